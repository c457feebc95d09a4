"""The training task of a compressed model: inputs, and the compiled model's activations on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import as_list
from tracr.compress.network import Network, network_of
from tracr.errors import InputError, TracrError
from tracr.model.designed import DesignedModel
from tracr.rasp.annotations import Encoding
from tracr.runtime.forward import forward
from tracr.runtime.table_interpreter import Batch, evaluate_batch
from tracr.values import Value, short_repr

__all__ = ["OutputTarget", "Task", "all_are_few", "all_inputs", "require_labelled", "task_of"]

Array = NDArray[np.float64]
MOST_INPUTS = 20_000


@dataclass(frozen=True, eq=False)
class OutputTarget:
    """The logits of an output and their targets: codes of a one-hot output, else numbers [input, position, logit]."""

    start: int
    stop: int
    categorical: bool
    wanted: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Inputs as numbers of distinct (token, position) pairs, and the compiled model's sub-layer outputs.

    `place` [input, position] is the row of `embedded` [pair, D] from which each position starts. `real` is true at
    tokens and BOS (other keys are masked). `targets` has the writes of every sub-layer on its dimensions
    [input, position, S].
    """

    network: Network
    ids: NDArray[np.int64]
    real: NDArray[np.bool_]
    place: NDArray[np.int32]
    embedded: Array
    targets: tuple[Array, ...]
    outputs: tuple[OutputTarget, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[Any]) -> Task:
        """The task with some of the inputs."""
        return replace(
            self,
            ids=self.ids[rows],
            real=self.real[rows],
            place=self.place[rows],
            targets=tuple(target[rows] for target in self.targets),
            outputs=tuple(replace(output, wanted=output.wanted[rows]) for output in self.outputs),
        )

    def sample(self, count: int) -> Task:
        """The task with `count` of the inputs, always the same ones, or with all of them if there are fewer."""
        if len(self) <= count:
            return self
        return self.take(np.sort(np.random.default_rng(0).permutation(len(self))[:count]))

    @property
    def masked(self) -> bool:
        """Whether inputs have different lengths."""
        return not bool(self.real.all())


def all_inputs(
    model: DesignedModel, *, lengths: Iterable[int] | None = None, distinct: bool = False
) -> list[list[Value]]:
    """Every input of the model; optionally only some lengths, or only inputs without repeated tokens."""
    tokens = model.options.vocab
    choose: Any = itertools.permutations if distinct else lambda pool, n: itertools.product(pool, repeat=n)
    chosen = _lengths(model) if lengths is None else lengths
    return [list(row) for length in chosen for row in choose(tokens, length)]


def all_are_few(model: DesignedModel) -> bool:
    """Whether the model takes at most `MOST_INPUTS` inputs, so that all of them can be run."""
    size = len(model.options.vocab)
    return bool(sum(size**length for length in _lengths(model)) <= MOST_INPUTS)


def _lengths(model: DesignedModel) -> range:
    shortest, longest = model.program.lengths
    return range(max(1, shortest), longest + 1)


def default_inputs(model: DesignedModel, most: int = MOST_INPUTS) -> list[list[Value]]:
    """Every input, or a random sample of `most` lengths and tokens if all are too many."""
    if all_are_few(model):
        return all_inputs(model)
    lengths, size = _lengths(model), len(model.options.vocab)
    rng = np.random.default_rng(0)
    rows = {tuple(rng.integers(size, size=rng.choice(lengths)).tolist()) for _ in range(most)}
    return [[model.options.vocab[code] for code in row] for row in sorted(rows)]


def require_labelled(model: object, what: str) -> None:
    """Refuse anything but a compiled model with one dimension per label: labels would name the wrong dimensions."""
    if not isinstance(model, DesignedModel):
        raise TracrError(
            f"only a compiled model can be {what}, not {short_repr(model)}",
            hint="pass a model returned by tracr.compile",
        )
    if model.norm is not None or not np.array_equal(model.directions, np.eye(model.d_model)):
        steps = ", ".join(model.variant.steps)
        raise TracrError(
            f"only a model with one dimension per label can be {what}, and this one was changed by {steps}",
            hint="pass model.labelled, which has the variant's weights along the labels, or model.plain",
        )


def task_of(model: DesignedModel, inputs: Sequence[Sequence[Value]] | None = None, most: int = MOST_INPUTS) -> Task:
    """The task of reproducing the model on these inputs, by default on every input, or on a sample of `most`."""
    require_labelled(model, "compressed")
    given = default_inputs(model, most) if inputs is None else as_list("inputs", inputs, error=InputError)
    if not given:
        raise InputError("there are no inputs to compress the model on", hint="pass a list of token sequences")
    ids, _, lengths = model.vocabulary.encode(given)
    ids, real = _without_errors(model, ids, np.array(lengths))
    network = network_of(model.parameters, model.options.causal)
    seen: dict[str, Array] = {}
    logits = np.asarray(forward(model.parameters, ids, np, causal=model.options.causal, hook=seen.__setitem__))
    targets = tuple(
        _clear(seen[part.name.replace(".attn", ".hook_attn_out").replace(".mlp", ".hook_mlp_out")], real)[
            ..., part.dims
        ]
        for part in network.parts
    )
    tokens, code = np.unique(ids, return_inverse=True)
    positions = np.arange(ids.shape[1])
    place = positions * len(tokens) + code.reshape(ids.shape)
    embedded = (model.parameters.W_E[tokens][None] + model.parameters.W_pos[positions][:, None]).reshape(
        -1, network.width
    )
    outputs = []
    for output in model.outputs:
        mine = logits[..., output.start : output.stop]
        categorical = output.encoding is Encoding.CATEGORICAL
        wanted = mine.argmax(axis=-1) if categorical else mine
        if not np.isfinite(wanted).all():
            raise InputError(
                f"{output.name} has values that are not finite, so nothing can be compared",
                hint="check model.own_weights; the weights may have been changed",
            )
        outputs.append(OutputTarget(output.start, output.stop, categorical, wanted))
    return Task(network, ids, real, place.astype(np.int32), embedded, targets, tuple(outputs))


def _clear(array: Array, real: NDArray[np.bool_]) -> Array:
    return np.where(real[..., None], array, 0.0)


def _without_errors(
    model: DesignedModel, ids: NDArray[np.int64], lengths: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The inputs on which the program has a value at every position, and their real positions."""
    keep = np.zeros(len(ids), dtype=bool)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        codes = ids[rows, 1 : length + 1].astype(np.int32)
        if length:
            keep[rows] = ~evaluate_batch(model.program, Batch(codes, np.full(len(rows), length, dtype=np.int32))).errors
    if not keep.any():
        raise InputError("the program gives no output on any of the inputs", hint="pass inputs on which it has a value")
    ids, lengths = ids[keep], lengths[keep]
    return ids, np.arange(ids.shape[1]) <= lengths[:, None]
