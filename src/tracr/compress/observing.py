"""Runs compressed models: what their sub-layers write, and how far that is from the compiled model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.network import Attention, Network
from tracr.compress.task import Task, task_of
from tracr.model.designed import DesignedModel
from tracr.model.verification import differs
from tracr.rasp.annotations import Encoding
from tracr.runtime.forward import Hook, forward
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.compress.model import CompressedModel

__all__ = [
    "REPORTED_INPUTS",
    "by_length",
    "compiled_logits",
    "cosine_of",
    "decoded_alike",
    "layer_losses_of",
    "layer_outputs",
    "measure",
    "measured_losses",
    "observe",
    "output_loss_of",
    "report_task",
    "right_positions",
    "token_positions",
]

Array = NDArray[Any]
REPORTED_INPUTS = 4096  # most inputs of a report
SAMPLED_INPUTS = 1000  # the inputs of a report if the model takes too many to run them all


def report_task(model: CompressedModel, inputs: Sequence[Sequence[Value]] | None) -> Task:
    """The inputs of a report: those given, every input, or a sample if they are too many."""
    return task_of(model.compiled, inputs, SAMPLED_INPUTS).sample(REPORTED_INPUTS)


def measure(model: CompressedModel, inputs: Sequence[Sequence[Value]] | None = None) -> tuple[float, float]:
    """The accuracy over positions and the mean cosine of the sub-layers' writes."""
    task = report_task(model, inputs)
    outs, logits = observe(model, task, model.network)
    cosines = [cosine_of(task, out, target) for out, target in zip(outs, task.targets, strict=True)]
    return float(right_positions(model.compiled, task, logits)[token_positions(task)].mean()), float(
        np.mean(cosines or [1.0])
    )


def observe(
    model: CompressedModel, task: Task, network: Network, hook: Hook | None = None
) -> tuple[list[Array], Array]:
    """The writes of every sub-layer before projection, on its dimensions of the compiled model, and the logits."""
    outs = [np.zeros((*task.place.shape, part.dims.size)) for part in network.parts]
    logits = np.zeros((*task.place.shape, model.parameters.W_U.shape[1]))
    for size, rows in by_length(task):
        seen: dict[str, Array] = {}

        def keep(name: str, tensor: Array, seen: dict[str, Array] = seen) -> Array | None:
            changed = None if hook is None else hook(name, tensor)
            seen[name] = tensor if changed is None else changed
            return changed

        ids = task.ids[rows, :size]
        logits[rows, :size] = forward(model.parameters, ids, np, causal=network.causal, hook=keep)
        for number, part in enumerate(network.parts):
            if isinstance(part, Attention):
                z = seen[f"{part.name}.hook_z"][..., : part.W_V.shape[2]]
                outs[number][rows, :size] = np.einsum("nphv,hvs->nps", z, part.W_O) + part.b_O
            else:
                outs[number][rows, :size] = seen[f"{part.name}.hook_post"] @ part.W_out + part.b_out
    return outs, logits


def layer_outputs(
    model: CompressedModel, inputs: Sequence[Sequence[Value]] | None = None
) -> dict[str, tuple[Array, Array, Array]]:
    """The writes of every sub-layer before projection, as means over inputs [position, D]: in the compiled model, in
    the compressed one, and the squared difference."""
    task = report_task(model, inputs)
    outs, _ = observe(model, task, model.network)
    count = np.maximum(1, task.real.sum(axis=0))[:, None]
    found = {}
    for part, out, target in zip(task.network.parts, outs, task.targets, strict=True):

        def mean(array: Array, dims: Array = part.dims) -> Array:
            wide = np.zeros((array.shape[1], task.network.width))
            wide[:, dims] = (array * task.real[..., None]).sum(axis=0) / count
            return wide

        found[part.name] = (mean(target), mean(out), mean((out - target) ** 2))
    return found


def measured_losses(model: CompressedModel, task: Task, network: Network) -> tuple[float, float, float]:
    """The output loss, the layer loss, and the output loss of the compiled model."""
    outs, logits = observe(model, task, network)
    floor = output_loss_of(task, compiled_logits(model.compiled, task))
    return output_loss_of(task, logits), float(sum(layer_losses_of(task, outs))), floor


def compiled_logits(model: DesignedModel, task: Task) -> Array:
    """The compiled model's logits [input, position, logit]."""
    return np.asarray(forward(model.parameters, task.ids, np, causal=model.options.causal))


def by_length(task: Task) -> list[tuple[int, Array]]:
    """The numbers of the inputs of each length, which counts BOS."""
    lengths = task.real.sum(axis=1)
    return [(int(size), np.flatnonzero(lengths == size)) for size in np.unique(lengths)]


def token_positions(task: Task) -> NDArray[np.bool_]:
    """The real positions, without BOS."""
    tokens = task.real.copy()
    tokens[:, 0] = False
    return tokens


def layer_losses_of(task: Task, outs: list[Array]) -> list[float]:
    """The mean squared difference of each sub-layer's writes over real positions."""
    return [
        float(((out - target) ** 2).sum(axis=-1)[task.real].mean())
        for out, target in zip(outs, task.targets, strict=True)
    ]


def output_loss_of(task: Task, logits: Array) -> float:
    """Cross-entropy for one-hot outputs plus squared error for numbers, as means over tokens."""
    tokens, total = token_positions(task), 0.0
    for output in task.outputs:
        mine, wanted = logits[tokens][:, output.start : output.stop], output.wanted[tokens]
        if output.categorical:
            shifted = mine - mine.max(axis=1, keepdims=True)
            chosen = shifted[np.arange(len(wanted)), wanted]
            total += float((np.log(np.exp(shifted).sum(axis=1)) - chosen).mean())
        else:
            total += float(((mine - wanted) ** 2).sum(axis=1).mean())
    return total


def cosine_of(task: Task, out: Array, target: Array) -> float:
    """The mean cosine over the real positions at which the compiled model writes something."""
    a, b = out[task.real], target[task.real]
    there = np.linalg.norm(b, axis=1) > 1e-9
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine = (a * b).sum(axis=1) / np.where(size > 0, size, 1.0)
    return float(cosine[there].mean()) if there.any() else 1.0


def right_positions(model: DesignedModel, task: Task, logits: Array) -> NDArray[np.bool_]:
    """The positions at which all outputs decode to the compiled model's."""
    return decoded_alike(model, logits, compiled_logits(model, task))


def decoded_alike(model: DesignedModel, logits: Array, wanted: Array) -> NDArray[np.bool_]:
    """The positions at which logits decode to the same values. An intervention can leave a one-hot output between two
    values: then both count as right."""
    right = np.ones(logits.shape[:2], dtype=bool)
    for output in model.outputs:
        same = ~differs(output.domain, output.codes(wanted), output.codes(logits))
        if output.encoding is Encoding.CATEGORICAL:
            mine = wanted[..., output.start : output.stop]
            chosen = np.take_along_axis(mine, output.codes(logits)[..., None], axis=-1)[..., 0]
            same |= chosen > mine.max(axis=-1) - 1e-6
        right &= same
    return right
