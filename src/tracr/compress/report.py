"""Measures a compressed model: its outputs, and whether it still computes them by the program's variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.network import Attention, Network
from tracr.compress.task import Task, task_of
from tracr.model.designed import DesignedModel
from tracr.model.interventions import Location, locations
from tracr.model.verification import differs
from tracr.rasp.annotations import Encoding
from tracr.runtime.forward import Hook, forward
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.compress.model import CompressedModel

__all__ = ["Readout", "Report", "Swap", "layer_outputs", "measure", "measured_losses", "report"]

Array = NDArray[Any]
PAIRS = 256  # most inputs whose variables are swapped
REPORTED_INPUTS = 4096  # most inputs of a report


@dataclass(frozen=True)
class Readout:
    """How well a linear map of the residual stream predicts a variable, on inputs the map was not fitted to.

    `r2` is the explained variance, `accuracy` the share of positions at which the nearest value is right.
    """

    variable: str
    place: str
    r2: float
    accuracy: float


@dataclass(frozen=True)
class Swap:
    """Interchange interventions: a variable gets its value on another input, along the directions of its features.

    `agreement` is the share of positions at which the output equals the program's with the variable replaced;
    `effective` is the same share over the positions where the replacement changes the program's output (NaN if none).
    """

    variable: str
    agreement: float
    effective: float


@dataclass(frozen=True)
class Report:
    """The measurements of a compressed model against the compiled one.

    `cosine` has, for every sub-layer, the mean cosine similarity of its writes before projection. `accuracy` is a share
    of positions, `exact_inputs` a share of inputs.
    """

    dim: int
    method: str
    inputs: int
    accuracy: float
    exact_inputs: float
    output_loss: float
    compiled_output_loss: float
    layer_losses: dict[str, float]
    cosine: dict[str, float]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    sharing: tuple[tuple[str, str, float], ...]
    readouts: tuple[Readout, ...]
    swaps: tuple[Swap, ...]

    @property
    def layer_loss(self) -> float:
        """The sum over sub-layers."""
        return sum(self.layer_losses.values())

    @property
    def mean_cosine(self) -> float:
        """The mean over sub-layers that write something."""
        return float(np.mean(list(self.cosine.values()))) if self.cosine else 1.0

    def __str__(self) -> str:
        lines = [
            f"{self.method}, {self.dim} dimensions, {self.inputs:,} inputs",
            f"accuracy {self.accuracy:.2%} of positions, {self.exact_inputs:.2%} of inputs completely right",
            f"output loss {self.output_loss:.3g} (compiled model: {self.compiled_output_loss:.3g}), "
            f"layer loss {self.layer_loss:.3g}",
            "cosine of the writes of sub-layers: "
            + ", ".join(f"{name} {value:.3f}" for name, value in self.cosine.items()),
            f"kept: {', '.join(self.kept) or '-'}",
            f"dropped: {', '.join(self.dropped) or '-'}",
            "sharing dimensions (cosine): "
            + (", ".join(f"{a} ~ {b} {value:+.2f}" for a, b, value in self.sharing[:12]) or "-")
            + (f" and {len(self.sharing) - 12} more" if len(self.sharing) > 12 else ""),
            "variables, read linearly from the last residual stream that needs them, and swapped between inputs:",
        ]
        swaps = {swap.variable: swap for swap in self.swaps}
        last = {readout.variable: readout for readout in self.readouts}
        for name, readout in last.items():
            line = f"  {name}: read-out {readout.accuracy:.2%} right (R² {readout.r2:.3f}) at {readout.place}"
            if name in swaps:
                swap = swaps[name]
                line += f"; swapped, {swap.agreement:.2%} of outputs as the program says"
                if not np.isnan(swap.effective):
                    line += f" ({swap.effective:.2%} where it matters)"
            lines.append(line)
        return "\n".join(lines)


def report(model: CompressedModel, inputs: Sequence[Sequence[Value]] | None = None) -> Report:
    """Measure a compressed model on the inputs given, by default on every input or a sample."""
    task = task_of(model.compiled, inputs).sample(REPORTED_INPUTS)
    outs, logits = observe(model, task, model.network)
    right = _right(model.compiled, task, logits)
    tokens = _tokens(task)
    losses = _layer_losses(task, outs)
    names = [part.name for part in task.network.parts]
    return Report(
        model.d_model,
        model.training.method,
        len(task),
        float(right[tokens].mean()),
        float((right | ~tokens).all(axis=1).mean()),
        _output_loss(task, logits),
        _output_loss(task, _compiled_logits(model.compiled, task)),
        dict(zip(names, losses, strict=True)),
        {name: _cosine(task, out, target) for name, out, target in zip(names, outs, task.targets, strict=True)},
        tuple(model.kept),
        tuple(model.dropped),
        tuple(model.sharing),
        _readouts(model, task),
        _swaps(model, task),
    )


def measure(model: CompressedModel, inputs: Sequence[Sequence[Value]] | None = None) -> tuple[float, float]:
    """The accuracy over positions and the mean cosine of the sub-layers' writes."""
    task = task_of(model.compiled, inputs).sample(REPORTED_INPUTS)
    outs, logits = observe(model, task, model.network)
    cosines = [_cosine(task, out, target) for out, target in zip(outs, task.targets, strict=True)]
    return float(_right(model.compiled, task, logits)[_tokens(task)].mean()), float(np.mean(cosines or [1.0]))


# Losses


def observe(
    model: CompressedModel, task: Task, network: Network, hook: Hook | None = None
) -> tuple[list[Array], Array]:
    """The writes of every sub-layer before projection, on its dimensions of the compiled model, and the logits."""
    outs = [np.zeros((*task.place.shape, part.dims.size)) for part in network.parts]
    logits = np.zeros((*task.place.shape, model.parameters.W_U.shape[1]))
    for size, rows in _by_length(task):
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
    task = task_of(model.compiled, inputs).sample(REPORTED_INPUTS)
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
    floor = _output_loss(task, _compiled_logits(model.compiled, task))
    return _output_loss(task, logits), float(sum(_layer_losses(task, outs))), floor


def _compiled_logits(model: DesignedModel, task: Task) -> Array:
    return np.asarray(forward(model.parameters, task.ids, np, causal=model.options.causal))


def _by_length(task: Task) -> list[tuple[int, Array]]:
    lengths = task.real.sum(axis=1)
    return [(int(size), np.flatnonzero(lengths == size)) for size in np.unique(lengths)]


def _tokens(task: Task) -> NDArray[np.bool_]:
    """The real positions, without BOS."""
    tokens = task.real.copy()
    tokens[:, 0] = False
    return tokens


def _layer_losses(task: Task, outs: list[Array]) -> list[float]:
    return [
        float(((out - target) ** 2).sum(axis=-1)[task.real].mean())
        for out, target in zip(outs, task.targets, strict=True)
    ]


def _output_loss(task: Task, logits: Array) -> float:
    tokens, total = _tokens(task), 0.0
    for output in task.outputs:
        mine, wanted = logits[tokens][:, output.start : output.stop], output.wanted[tokens]
        if output.categorical:
            shifted = mine - mine.max(axis=1, keepdims=True)
            chosen = shifted[np.arange(len(wanted)), wanted]
            total += float((np.log(np.exp(shifted).sum(axis=1)) - chosen).mean())
        else:
            total += float(((mine - wanted) ** 2).sum(axis=1).mean())
    return total


def _cosine(task: Task, out: Array, target: Array) -> float:
    """The mean cosine over the real positions at which the compiled model writes something."""
    a, b = out[task.real], target[task.real]
    there = np.linalg.norm(b, axis=1) > 1e-9
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine = (a * b).sum(axis=1) / np.where(size > 0, size, 1.0)
    return float(cosine[there].mean()) if there.any() else 1.0


def _right(model: DesignedModel, task: Task, logits: Array) -> NDArray[np.bool_]:
    """The positions at which all outputs decode to the compiled model's."""
    return _same(model, logits, _compiled_logits(model, task))


def _same(model: DesignedModel, logits: Array, wanted: Array) -> NDArray[np.bool_]:
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


# Variables


def _readouts(model: CompressedModel, task: Task) -> tuple[Readout, ...]:
    """The readouts of every variable from the residual stream after each sub-layer that has it, fitted on half of the
    inputs."""
    compiled: dict[str, Array] = {}
    squeezed: dict[str, Array] = {}
    _run(model.compiled, model.compiled.parameters, task, compiled)
    _run(model.compiled, model.parameters, task, squeezed)
    places = [name for name in squeezed if name.endswith(("hook_resid_mid", "hook_resid_post"))]
    tokens = _tokens(task)
    fitted = np.zeros_like(tokens)
    fitted[::2] = True
    known = locations(model.compiled.program, model.compiled.layout)
    found = []
    for label, location in known.items():
        live = location.slots[location.slots >= 0]
        codes = _stream(compiled, location.hook)[..., live]
        start = places.index(location.hook) if location.hook in places else 0
        for place in places[start:]:
            if not _needed(model.compiled, location, place):
                continue
            stream = squeezed[place]
            fit, test = (tokens & half for half in (fitted, ~fitted))
            if not test.any():
                test = fit
            solution = np.linalg.lstsq(_with_one(stream[fit]), codes[fit], rcond=1e-9)[0]
            guess, true = _with_one(stream[test]) @ solution, codes[test]
            spread = ((true - true.mean(axis=0)) ** 2).sum()
            r2 = 1 - ((guess - true) ** 2).sum() / spread if spread > 0 else 1.0
            values = np.unique(codes[tokens].round(9), axis=0)
            nearest = ((guess[:, None, :] - values[None]) ** 2).sum(axis=-1).argmin(axis=1)
            right = np.abs(values[nearest] - true).max(axis=1) < 1e-6
            found.append(Readout(label, place, float(r2), float(right.mean())))
    return tuple(found)


def _needed(model: DesignedModel, location: Location, place: str) -> bool:
    """Whether a component after `place` still reads the variable."""
    layer, after_mlp = int(place.split(".")[1]), place.endswith("post")
    for slot in location.slots[location.slots >= 0]:
        for reader in model.residual[int(slot)].readers:
            if reader == "unembed":
                return True
            _, number, kind, *_ = reader.split(".")
            if int(number) > layer or (int(number) == layer and kind == "mlp" and not after_mlp):
                return True
    return False


def _with_one(rows: Array) -> Array:
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


def _stream(seen: dict[str, Array], hook: str) -> Array:
    return seen["hook_embed"] + seen["hook_pos_embed"] if hook == "hook_embed" else seen[hook]


def _run(model: DesignedModel, parameters: Any, task: Task, seen: dict[str, Array], hook: Any = None) -> Array:
    """Record every activation at the inputs' own lengths (zeros after them) in `seen`; returns the logits."""
    whole = np.zeros((*task.place.shape, parameters.W_U.shape[1]))
    for size, rows in _by_length(task):

        def keep(name: str, tensor: Array, size: int = size, rows: Array = rows) -> Array | None:
            changed = None if hook is None else hook(name, (tensor, rows, size))
            held = tensor if changed is None else changed
            if held.ndim == 3:
                target = seen.setdefault(name, np.zeros((*task.place.shape, held.shape[-1])))
                target[rows, :size] = held
            return changed

        whole[rows, :size] = forward(parameters, task.ids[rows, :size], np, causal=model.options.causal, hook=keep)
    return whole


def _swaps(model: CompressedModel, task: Task) -> tuple[Swap, ...]:
    """Give every variable its values on another input of the same length, in both models, and compare the outputs."""
    longest = task.real.sum(axis=1) == task.real.sum(axis=1).max()
    rows = np.flatnonzero(longest)[:: max(1, int(longest.sum()) // PAIRS)][:PAIRS]
    task = task.take(rows)
    other = np.random.default_rng(0).permutation(len(task))
    compiled: dict[str, Array] = {}
    base = _run(model.compiled, model.compiled.parameters, task, compiled)
    tokens = _tokens(task)
    found = []
    sites = {part.name: number + 1 for number, part in enumerate(task.network.parts)}
    for label, location in locations(model.compiled.program, model.compiled.layout).items():
        live = location.slots[location.slots >= 0]
        if not live.size:
            continue
        codes = _stream(compiled, location.hook)[..., live]
        change = np.where(tokens[..., None], codes[other] - codes, 0.0)
        part = location.hook.replace("hook_resid_mid", "attn").replace("hook_resid_post", "mlp")
        rows_of_w = model.projection.write(sites.get(part, 0))[live]
        wide = np.zeros((*change.shape[:2], task.network.width))
        wide[..., live] = change
        wanted = _run(model.compiled, model.compiled.parameters, task, {}, _adding(location.hook, wide))
        got = _run(model.compiled, model.parameters, task, {}, _adding(location.hook, change @ rows_of_w))
        agrees = _same(model.compiled, got, wanted)
        matters = tokens & ~_same(model.compiled, wanted, base)
        effective = float(agrees[matters].mean()) if matters.any() else float("nan")
        found.append(Swap(label, float(agrees[tokens].mean()), effective))
    return tuple(found)


def _adding(where: str, change: Array) -> Any:
    def hook(name: str, given: tuple[Array, Array, int]) -> Array | None:
        tensor, rows, size = given
        return tensor + change[rows, :size] if name == where else None

    return hook
