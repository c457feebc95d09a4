"""Step 6: assemble the weight matrices, with the names and shapes of TransformerLens.

Parallel heads are stacked, parallel MLPs concatenated; each layer keeps its own sizes. Weights are float64 here and
cast when the model runs. Scores are not divided by sqrt(d_head): the logit gap is exactly what was designed.

The unembedding gives the code itself: 1 for the value of a one-hot output and 0 for the others. From a code x in B bits
it gives c_v . x for every value v: B for the right one, at most B - 2 for the others.
"""

from __future__ import annotations

import numpy as np

from tracr.compiler.construct import Construction
from tracr.compiler.options import Options
from tracr.compiler.schedule import Layer
from tracr.compiler.size import count_parameters, layer_sizes
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import Array, Variable
from tracr.errors import LimitError
from tracr.model.parameters import LayerParameters, Parameters

__all__ = ["assemble"]


def assemble(construction: Construction, options: Options) -> Parameters:
    """The weights of the transformer."""
    check_budget(construction, options)
    width = construction.width
    assembler = _Assembler(construction, width)
    w_e, w_pos = assembler.embedding(options)
    outputs = construction.schedule.circuit.outputs
    w_u = np.zeros((width, sum(len(variable.values) for _, variable in outputs)))
    start = 0
    for (_, variable), code in zip(outputs, construction.schedule.circuit.unembedded, strict=True):
        linear = code if variable.codebook is None else code.then(variable.codebook.T)
        assembler.read(linear, w_u[:, start : start + linear.width], np.zeros(0))
        start += linear.width
    layers = tuple(assembler.layer(layer) for layer in construction.layers)
    return Parameters(w_e, w_pos, layers, w_u)


def check_budget(construction: Construction, options: Options) -> None:
    """Refuse a model with more parameters than allowed, before anything large is allocated."""
    counts = count_parameters(construction.schedule, construction.width)
    total = sum(counts.values())
    if total > options.max_parameters:
        largest = sorted(counts, key=lambda name: counts[name], reverse=True)[:3]
        parts = ", ".join(f"{name} {counts[name]:,}" for name in largest)
        raise LimitError(
            f"the model would have about {total:,} parameters ({total * 12 / 2**30:.1f} GiB while compiling) in "
            f"{construction.width:,} dimensions and {len(construction.layers)} layers; the largest: {parts}",
            hint="use fewer values, fewer operations or a shorter max_seq_len, or raise max_parameters "
            f"(now {options.max_parameters:,})",
        )


class _Assembler:
    def __init__(self, construction: Construction, width: int) -> None:
        places: dict[Variable, tuple[list[int], list[int]]] = {}
        for direction in construction.directions:
            live, slots = places.setdefault(direction.variable, ([], []))
            live.append(direction.place)
            slots.append(direction.slot)
        self.slots = {variable: (_as_slice(live), _as_slice(slots)) for variable, (live, slots) in places.items()}
        self.circuit = construction.schedule.circuit
        self.width = width

    def embedding(self, options: Options) -> tuple[Array, Array]:
        """W_E: a row per token, then BOS and PAD. W_pos: a row for BOS, then per position."""
        tokens = len(options.vocab)
        w_e, w_pos = np.zeros((tokens + 2, self.width)), np.zeros((options.max_seq_len + 1, self.width))
        for source in self.circuit.embedded:
            if source.by_token is not None:
                self.put(w_e[:tokens], source.variable, source.by_token)
            if source.by_position is not None:
                self.put(w_pos[1:], source.variable, source.by_position)
        self.put(w_e[tokens : tokens + 1], BOS, np.ones((1, 1)))
        self.put(w_e[tokens + 1 :], PAD, np.ones((1, 1)))
        self.put(w_e, ONE, np.ones((tokens + 2, 1)))
        return w_e, w_pos

    def put(self, target: Array, variable: Variable, rows: Array) -> None:
        """Write rows over a variable's coordinates into the columns of its slots."""
        if variable in self.slots:
            live, slots = self.slots[variable]
            target[:, slots] += rows[:, live]

    def read(self, linear: LinearMap, matrix: Array, bias: Array) -> None:
        """Fill a matrix [width, n] that reads; `one` becomes a bias where it has no direction."""
        for variable, block in linear.blocks.items():
            if variable is ONE and ONE not in self.slots:
                bias[: linear.width] += block[0]
            else:
                self.put(matrix[:, : linear.width].T, variable, block.T)

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
            self.read(head.value, w_v[number], b_v[number])
            for variable, matrix in head.writes:
                self.put(w_o[number, : head.value.width], variable, matrix)
        w_in, b_in, w_out = np.zeros((self.width, d_mlp)), np.zeros(d_mlp), np.zeros((d_mlp, self.width))
        start = 0
        for part in layer.mlps:
            stop = start + part.read.width
            self.read(part.read, w_in[:, start:stop], b_in[start:stop])
            for variable, matrix in (*part.writes, *part.clears):
                self.put(w_out[start:stop], variable, matrix)
            start = stop
        zeros = np.zeros(self.width)
        return LayerParameters(w_q, b_q, w_k, b_k, w_v, b_v, w_o, zeros, w_in, b_in, w_out, zeros)


def _as_slice(numbers: list[int]) -> slice | list[int]:
    """Numbers that follow on one another as a slice, which numpy reads and writes fastest."""
    span = range(numbers[0], numbers[0] + len(numbers))
    return slice(span.start, span.stop) if numbers == list(span) else numbers
