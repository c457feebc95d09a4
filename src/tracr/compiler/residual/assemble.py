"""The pass `assemble`: the weight matrices, with the names and shapes of TransformerLens.

Heads of a layer are stacked, its groups of neurons concatenated; each layer keeps its own sizes. Weights are float64
here and cast when the model runs. Scores are not divided by sqrt(d_head): the logit gap is exactly as designed.

The unembedding gives the code itself: 1 for the value of a one-hot output and 0 for the others. From a code x in B bits
it gives c_v . x for every value v: B for the right value, at most B - 2 for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tracr.craft.bos import cancelling_at_bos
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import Array, Variable
from tracr.errors import LimitError
from tracr.ir.budget import WEIGHT, Budget
from tracr.ir.layout import Layout
from tracr.ir.options import Options
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.ir.schedule import Layer
from tracr.ir.size import Size, count_parameters, layer_sizes

__all__ = ["assemble", "check_size"]


def assemble(layout: Layout, options: Options) -> Parameters:
    """The weights of the transformer."""
    check_budget(layout, options)
    width = layout.width
    assembler = _Assembler(layout, width)
    w_e, w_pos = assembler.embedding(options)
    outputs = layout.schedule.outputs
    w_u = np.zeros((width, sum(len(variable.values) for _, variable in outputs)))
    start = 0
    for (_, variable), code in zip(outputs, layout.schedule.unembedded, strict=True):
        linear = code if variable.codebook is None else code.then(variable.codebook.T)
        assembler.read(linear, w_u[:, start : start + linear.width], np.zeros(0))
        start += linear.width
    layers = tuple(assembler.layer(layer) for layer in layout.layers)
    return Parameters(w_e, w_pos, layers, w_u)


def check_budget(layout: Layout, options: Options) -> None:
    """Refuse a model with more parameters than allowed, before anything large is allocated."""
    size = layout.size
    if size.parameters > options.max_parameters:
        counts = count_parameters(layout.schedule, layout.width)
        largest = sorted(counts, key=lambda name: counts[name], reverse=True)[:3]
        raise _too_large(size, options, "; the largest: " + ", ".join(f"{name} {counts[name]:,}" for name in largest))
    budget = Budget(options.max_memory, layout.schedule.tables + layout.schedule.nbytes)
    budget.need(WEIGHT * size.parameters, _extent(size))


def check_size(size: Size, options: Options) -> None:
    """Refuse a model with more parameters than allowed."""
    if size.parameters > options.max_parameters:
        raise _too_large(size, options)


def _too_large(size: Size, options: Options, more: str = "") -> LimitError:
    return LimitError(
        _extent(size) + more,
        hint="use fewer values, fewer operations or a shorter max_seq_len, or raise max_parameters "
        f"(now {options.max_parameters:,})",
    )


def _extent(size: Size) -> str:
    many = f"about {size.parameters:,} parameters in {size.dimensions:,} dimensions"
    return f"the model would have {many} and {size.layers} layers"


def _in_a_row(places: Sequence[tuple[int, int]]) -> Iterator[tuple[slice, slice]]:
    """Runs of consecutive coordinates with consecutive slots, as pairs of slices: the fastest way to copy."""
    start = 0
    for end, (place, slot) in enumerate(places, start=1):
        if end == len(places) or places[end] != (place + 1, slot + 1):
            first = places[start]
            yield slice(first[0], place + 1), slice(first[1], slot + 1)
            start = end


class _Assembler:
    def __init__(self, layout: Layout, width: int) -> None:
        places: dict[Variable, list[tuple[int, int]]] = {}
        for direction in layout.directions:
            places.setdefault(direction.variable, []).append((direction.place, direction.slot))
        self.slots = {variable: list(_in_a_row(own)) for variable, own in places.items()}
        self.schedule = layout.schedule
        self.width = width

    def embedding(self, options: Options) -> tuple[Array, Array]:
        """W_E: a row per token, then BOS and PAD. W_pos: a row for BOS, then per position."""
        tokens = len(options.vocab)
        w_e, w_pos = np.zeros((tokens + 2, self.width)), np.zeros((options.max_seq_len + 1, self.width))
        embedded = self.schedule.embedded
        self.put(w_e[:tokens], [(one.variable, one.by_token) for one in embedded if one.by_token is not None])
        self.put(w_pos[1:], [(one.variable, one.by_position) for one in embedded if one.by_position is not None])
        self.put(w_e[tokens : tokens + 1], [(BOS, np.ones((1, 1)))])
        self.put(w_e[tokens + 1 :], [(PAD, np.ones((1, 1)))])
        self.put(w_e, [(ONE, np.ones((tokens + 2, 1)))])
        return w_e, w_pos

    def put(self, target: Array, parts: Iterable[tuple[Variable, Array]], *, again: bool = False) -> None:
        """Write rows over variables' coordinates into the columns of their slots; with `again`, add them.

        Without `again`, new memory is filled but not read, because reading it costs as much as filling it. This is
        right because no two variables are in one slot at one time.
        """
        for variable, rows in parts:
            for live, slots in self.slots.get(variable, ()):
                own = target[:, slots]
                np.add(rows[:, live], own if again else 0.0, out=own)

    def read(self, linear: LinearMap, matrix: Array, bias: Array) -> None:
        """Fill a matrix [width, n] that reads variables; `one` becomes a bias if it has no direction."""
        if ONE in linear.blocks and ONE not in self.slots:
            bias[: linear.width] += linear.blocks[ONE][0]
        self.put(matrix[:, : linear.width].T, [(variable, block.T) for variable, block in linear.blocks.items()])

    def layer(self, layer: Layer) -> LayerParameters:
        """The stacked heads and concatenated neurons of one layer."""
        heads, d_head, d_mlp = layer_sizes(layer)
        wide, narrow = (heads, self.width, d_head), (heads, d_head)
        w_q, w_k, w_v = np.zeros(wide), np.zeros(wide), np.zeros(wide)
        b_q, b_k, b_v = np.zeros(narrow), np.zeros(narrow), np.zeros(narrow)
        w_o = np.zeros((heads, d_head, self.width))
        for number, head in enumerate(layer.heads):
            self.read(head.query, w_q[number], b_q[number])
            self.read(head.key, w_k[number], b_k[number])
            self.read(cancelling_at_bos(head.value), w_v[number], b_v[number])
            self.put(w_o[number, : head.value.width], head.writes)
        w_in, b_in, w_out = np.zeros((self.width, d_mlp)), np.zeros(d_mlp), np.zeros((d_mlp, self.width))
        start = 0
        for part in layer.mlps:
            stop = start + part.read.width
            self.read(part.read, w_in[:, start:stop], b_in[start:stop])
            self.put(w_out[start:stop], part.writes)
            self.put(w_out[start:stop], part.clears, again=True)
            start = stop
        zeros = np.zeros(self.width)
        return LayerParameters(w_q, b_q, w_k, b_k, w_v, b_v, w_o, zeros, w_in, b_in, w_out, zeros)
