"""The codes that each part of a compiled model reads and must write.

A part is a head or a group of neurons. It reads only the dimensions that the compiled part reads, for each input (q, k,
v; or in), and writes only those that the compiled part writes. Its training data are the compiled model's activations
on a set of inputs, padded to the longest.

Noise. The values of a dimension have a smallest distance, its spacing. A part is trained with uniform noise on what it
reads, and may have an error in what it writes. Both are the same number for each dimension, its margin: if every part
writes with an error below the margins, then every part reads codes within the noise it was trained with. Margins are
a part of the spacing, smaller in three cases:

- dimensions that the embedding writes: their codes are exact, and noise only makes accurate heads harder to train;
- queries and keys: the logits of a head are large, so a softmax over several keys amplifies errors;
- values: a head multiplies them by its values-to-outputs matrix, and the error of its output has a margin of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.variables import Variable
from tracr.ground_truth.wiring import read_slots, written_slots
from tracr.runtime.forward import forward

if TYPE_CHECKING:
    from tracr.ir.parameters import LayerParameters
    from tracr.model.compiled import CompiledModel

__all__ = ["PartCodes", "PartPlace", "Streams", "margins_of", "parts_of", "places_of", "spacing_of", "streams_of"]

Array = NDArray[Any]
Slots = tuple[int, ...]
SAME = 2e-4  # values that differ by less are one value
EXACT = 0.01  # the margin of a dimension that the embedding writes, as a part of the usual one
SCORED = 0.05  # the same for dimensions that a query or a key reads
AVERAGED = 0.25  # the share of a head's margin that the errors of its values may take
ROUNDED = 6  # decimals: activations that differ by less are the same training example


@dataclass(frozen=True, eq=False)
class PartPlace:
    """A part of a compiled model: the dimensions that each of its inputs reads and that it writes, and its variables.

    `span` has the compiled model's neurons of a group; it is `None` for a head.
    """

    name: str
    layer: int
    place: int
    reads: dict[str, Slots]
    writes: Slots
    variables: tuple[str, ...]
    span: slice | None


@dataclass(frozen=True, eq=False)
class PartCodes:
    """The training data of a part: the codes that each of its inputs reads, and what it must write.

    The codes of a head are [example, position, dimension], and `pattern` is its attention [example, query, key]. The
    codes of a group of neurons are [example, dimension], and its `pattern` is `None`.
    """

    where: PartPlace
    codes: dict[str, Array]
    wanted: Array
    pattern: Array | None

    @property
    def size(self) -> int:
        """The number of examples."""
        return len(self.wanted)

    @property
    def reads(self) -> dict[str, Slots]:
        """The dimensions that each input reads."""
        return self.where.reads

    @property
    def writes(self) -> Slots:
        """The dimensions that the part writes."""
        return self.where.writes


@dataclass(frozen=True, eq=False)
class Streams:
    """The activations of a compiled model, in float64, and which positions hold no PAD, [input, position]."""

    ids: NDArray[np.int64]
    real: NDArray[np.bool_]
    seen: dict[str, Array]
    layers: int

    @property
    def last(self) -> Array:
        """The residual stream at the end [input, position, d_model]; it holds all variables."""
        return self.seen[f"blocks.{self.layers - 1}.hook_resid_post"]


def streams_of(model: CompiledModel, ids: Array) -> Streams:
    """The activations of a compiled model on ids."""
    kept = ("hook_resid_pre", "hook_resid_mid", "hook_resid_post", "hook_pattern", "hook_result", "mlp.hook_post")
    seen: dict[str, Array] = {}

    def keep(name: str, tensor: Array) -> None:
        if name.endswith(kept):
            seen[name] = tensor

    with np.errstate(under="ignore"):
        forward(model.parameters, ids, np, causal=model.options.causal, hook=keep, fine=frozenset({"result"}))
    return Streams(ids, ids != model.vocabulary.pad_id, seen, model.n_layers)


def spacing_of(streams: Streams) -> Array:
    """For each dimension the smallest distance of two of its values, at most 1."""
    return np.array([_spacing(column) for column in streams.last[streams.real].T])


def _spacing(values: Array) -> float:
    gaps = np.diff(np.unique(values))
    gaps = gaps[gaps > SAME]
    return float(min(1.0, gaps.min())) if len(gaps) else 1.0


def margins_of(model: CompiledModel, spacing: Array, noise: float) -> Array:
    """For each dimension, the noise that its readers are trained with and the error that its writer may have."""
    weights = model.parameters
    margins = noise * spacing
    embedded = [*written_slots(weights.W_E), *written_slots(weights.W_pos)]
    margins[embedded] *= EXACT
    written_later = np.ones(len(spacing), dtype=bool)
    written_later[embedded] = False
    for layer in reversed(weights.layers):
        for head in range(len(layer.W_Q)):
            reads, writes = _head_slots(layer, head)
            scored = [slot for slot in (*reads["q"], *reads["k"]) if written_later[slot]]
            margins[scored] = np.minimum(margins[scored], SCORED * noise * spacing[scored])
            values = list(reads["v"])
            gain = np.abs(layer.W_V[head][values] @ layer.W_O[head][:, list(writes)])
            allowed = AVERAGED * margins[list(writes)] / np.maximum(gain, 1e-12)
            margins[values] = np.minimum(margins[values], allowed.min(axis=1, initial=np.inf))
    return margins


def places_of(model: CompiledModel) -> Iterator[PartPlace]:
    """The parts in the order in which they compute: in each layer heads, then groups of neurons."""
    for number, (layer, weights) in enumerate(zip(model.layout.layers, model.parameters.layers, strict=True)):
        for place, head in enumerate(layer.heads):
            reads, writes = _head_slots(weights, place)
            yield PartPlace(f"blocks.{number}.attn.{place}", number, place, reads, writes, _labels(head.writes), None)
        start = 0
        for place, group in enumerate(layer.mlps):
            span = slice(start, start + group.read.width)
            reads, writes = {"in": read_slots(weights.W_in[:, span])}, written_slots(weights.W_out[span])
            yield PartPlace(f"blocks.{number}.mlp.{place}", number, place, reads, writes, _labels(group.writes), span)
            start = span.stop


def parts_of(model: CompiledModel, streams: Streams) -> Iterator[PartCodes]:
    """The parts with their training data, in the order in which they compute."""
    for where in places_of(model):
        of = _head_codes if where.span is None else _neuron_codes
        yield of(where, streams, model.parameters.layers[where.layer])


def _labels(writes: tuple[tuple[Variable, Any], ...]) -> tuple[str, ...]:
    return tuple(variable.label for variable, _ in writes)


def _head_codes(where: PartPlace, streams: Streams, weights: LayerParameters) -> PartCodes:
    block, writes = f"blocks.{where.layer}", list(where.writes)
    stream = streams.seen[f"{block}.hook_resid_pre"]
    codes = {name: stream[..., list(slots)] for name, slots in where.reads.items()}
    pattern = streams.seen[f"{block}.attn.hook_pattern"][:, where.place]
    wanted = (streams.seen[f"{block}.attn.hook_result"][:, :, where.place] + weights.b_O)[..., writes]
    first = _different(np.concatenate([array.reshape(len(array), -1) for array in codes.values()], axis=1))
    return PartCodes(where, {name: array[first] for name, array in codes.items()}, wanted[first], pattern[first])


def _neuron_codes(where: PartPlace, streams: Streams, weights: LayerParameters) -> PartCodes:
    block, read = f"blocks.{where.layer}", list(where.reads["in"])
    codes = streams.seen[f"{block}.hook_resid_mid"][..., read].reshape(-1, len(read))
    first = _different(codes)
    post = streams.seen[f"{block}.mlp.hook_post"][..., where.span]
    post = post.reshape(-1, post.shape[-1])[first]
    wanted = (post @ weights.W_out[where.span] + weights.b_out)[:, list(where.writes)]
    return PartCodes(where, {"in": codes[first]}, wanted, None)


def _different(rows: Array) -> NDArray[np.intp]:
    """The indices of one row of each kind, up to rounding."""
    return np.unique(rows.round(ROUNDED), axis=0, return_index=True)[1]


def _head_slots(layer: LayerParameters, head: int) -> tuple[dict[str, Slots], Slots]:
    reads = {"q": read_slots(layer.W_Q[head]), "k": read_slots(layer.W_K[head]), "v": read_slots(layer.W_V[head])}
    return reads, written_slots(layer.W_O[head])
