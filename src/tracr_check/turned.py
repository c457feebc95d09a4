"""Rotated models: the stream is c R for an orthogonal matrix R, where c is the stream of a plain network.

The hint is R, one row for each label. R is checked to be orthogonal, exactly: R R^T = I. The plain network has the
readers R M' and the writers W' R^T, for the readers M' and writers W' of the rotated one; all products are exact here.
So any R gives *some* plain network that computes the same in exact arithmetic, and a wrong hint only gives one that is
not proved. This module shows that the rotated network does the same in the named arithmetic too.

A dimension is *pure* if it holds one label, with the factor 1 or -1. Other dimensions are *mixed*.

**Lemma.** Suppose that in every execution of the rotated network, at tokens and at BOS,

1. each sum that a reader computes reads pure dimensions only, or is exact;
2. each sum written into a mixed dimension is exact, unless only the unembedding reads the dimension afterwards.

Then for every execution of the rotated network there is an execution of the plain network, within the bounds that its
proof uses, with the same queries, keys, values and neurons, and with streams c such that the rotated stream is c R + e.
At each position e is at most the errors of the sums written so far; it is 0 in pure dimensions, and at tokens and BOS
in dimensions that a reader will read. PAD need not satisfy 1 and 2: `blur` is what e and rounding add to its reads.

*Proof*, by induction over sub-layers. A reader of pure dimensions has the same products as the plain reader: the signs
cancel. So its result is one that the plain reader may have. An exact result is that of the plain reader without any
rounding, which is within every bound. Patterns and hidden values are then the same. A sum written into a pure dimension
has the products of the plain sum, all with the same sign or all with the other one. Sums written into mixed dimensions
are exact, or e takes their error: c is then what the plain network writes without rounding. This need not be a number
of the format, so `_unstored` takes away what the plain proof would conclude from that. QED

**A sum is exact**, in any order, if all its products are multiples of a grid, and the positive ones and the negative
ones each add up to at most 2^p grid. What a dimension holds is bounded by the boxes of its labels, and is on a grid if
all of them are points. A hidden value whose sum is exact is on the grid of its products. What a head gives is what the
plain network writes into a label that nothing else writes and that was 0 before, with a weight 2^k, k >= 0.

The logits are off by at most e |M'| and, where they read mixed dimensions, by the error of their own sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import (
    INF,
    Read,
    State,
    farthest,
    grid_of,
    joined,
    product_grid,
    read_state,
    rounded,
    signed_sums,
)
from tracr_check.following import Follower
from tracr_check.head import States
from tracr_check.proving import Weights, sum_of_rows
from tracr_check.variables import Array, Env, Var
from tracr_check.verdict import need

__all__ = ["Turned"]

WORK = 5e8  # products of values and weights that are looked at value by value


@dataclass(frozen=True, eq=False)
class _Held:
    """What dimensions, or sources of a write, hold at a kind of position: ranges and grids (0: not on a known one)."""

    lo: Array
    hi: Array
    grid: Array

    @property
    def size(self) -> Array:
        """The largest absolute values."""
        return farthest(self.lo, self.hi)

    def sums(self, matrix: Array, grids: Array) -> tuple[Array, Array, Array]:
        """For sums of products with columns of a matrix (its grids): the most of each sign, a grid of the products."""
        up, down = signed_sums(self.lo, self.hi, matrix)
        some = (self.lo != 0) | (self.hi != 0)
        grid = product_grid(np.where(some, self.grid, INF)[None], grids)[0]
        return up * (1 + 2.0**-30), down * (1 + 2.0**-30), grid


class Turned(Follower):
    """Follows the proof of the plain network of a rotated one."""

    def __init__(self, rotated: Weights, plain: Weights, rotation: Array, a: Arithmetic) -> None:
        self.rotated, self.plain, self.rotation, self.a = rotated, plain, rotation, a
        self.mixed = (np.abs(rotation) == 1).sum(0) != 1
        self.labels = (rotation[:, self.mixed] != 0).any(1)  # that they hold
        self.errors, self.work = dict.fromkeys(("tokens", "bos", "pad"), np.zeros(len(rotation))), WORK
        sizes = [max(len(block.w_o), len(block.neurons.b_in)) for block in rotated.blocks]
        self.terms = 4 + max(sizes, default=0)  # more roundings than any product goes through
        self.last = np.full(len(rotation), -1)
        for time in range(2 * rotated.layers):
            for matrix, _ in rotated.readers(time):
                self.last[matrix.any(1)] = time

    def embedded(self, states: States) -> States:
        """The sum of two rows: of the token and of the position."""
        size, exact = sum_of_rows(self.rotated.embed, self.rotated.positions, self.a)
        need(size.max(initial=0.0) < self.a.largest, "numbers too large")
        for kind in states.kinds:
            self._written(-1, kind, size, exact)
        return self._seen(0, states)

    def attended(self, layer: int, before: States, after: States) -> States:
        """The writes of heads, and what the MLP reads."""
        block = self.rotated.blocks[layer]
        for kind, old in before.kinds.items():
            given = self._given(layer, before, old, getattr(after, kind))
            self._written(2 * layer, kind, *self._sums(self._held(kind, old), [given], block.w_o, block.bias))
        return self._seen(2 * layer + 1, after)

    def transformed(self, layer: int, before: States, after: States) -> States:
        """The writes of neurons, and what the next heads read."""
        neurons = self.rotated.blocks[layer].neurons
        for kind, old in before.kinds.items():
            held = self._held(kind, old)
            size, exact = self._sums(held, self._hidden(layer, old, ""), neurons.w_out, neurons.b_out)
            for name, boxes in old.tables.items():  # value by value, if that is not enough, and not too much work
                work = len(boxes.lo) * neurons.w_out.size
                if kind != "pad" and (self.mixed & ~exact).any() and work <= self.work:
                    self.work -= work
                    exact = exact | self._sums(held, self._hidden(layer, old, name), neurons.w_out, neurons.b_out)[1]
            self._written(2 * layer + 1, kind, size, exact)
        return self._seen(2 * layer + 2, after)

    def logits(self, states: States, unembed: Array) -> tuple[Array, Array]:
        """The errors of the dimensions, and those of the sums."""
        matrix = self.rotated.unembed
        size = self._held("tokens", states.tokens).size @ np.abs(matrix)
        need(size.max(initial=0.0) < self.a.largest, "numbers too large")
        own = np.where((matrix[self.mixed] != 0).any(0), self.a.gamma((matrix != 0).sum(0) + 2.0) * size, 0.0)
        narrow = self.a.stored_unit * 2 * size + self.a.stored_tiny if self.a.narrow else 0.0
        lost = 4 * (len(matrix) + 2) * self.a.tiny * (own > 0)
        found = (self.errors["tokens"] @ np.abs(matrix) + own + narrow) * (1 + 2.0**-30) + lost
        return 0.0 * found, found

    # One sub-layer

    def _seen(self, time: int, states: States) -> States:
        """The states for the readers at a time, all of which are right about them."""
        found = States(**{kind: self._unstored(state) for kind, state in states.kinds.items()})
        self._read(time, found)
        return found if found.pad is None else replace(found, pad=replace(found.pad, blur=self._blur(found.pad)))

    def _unstored(self, state: State) -> State:
        """A state whose labels in mixed dimensions need not be numbers of the format: only points have grids."""
        tables = {}
        for name, boxes in state.tables.items():
            unknown = self.labels[boxes.dims] & (boxes.lo != boxes.hi)
            tables[name] = replace(boxes, grid=np.where(unknown, 0.0, boxes.grid))
        return replace(state, tables=tables)

    def _held(self, kind: str, state: State) -> _Held:
        """What the dimensions hold: c R, variable by variable, and e."""
        off = self.errors[kind]
        lo, hi, grid = -off, off, np.where(off > 0, 0.0, INF)
        for boxes in state.tables.values():
            turn = self.rotation[boxes.dims]
            middle, radius = (boxes.lo + boxes.hi) / 2, (boxes.hi - boxes.lo) / 2
            wide = radius @ np.abs(turn) + 2.0**-40 * (farthest(boxes.lo, boxes.hi) @ np.abs(turn))
            lo, hi = lo + (middle @ turn - wide).min(0), hi + (middle @ turn + wide).max(0)
            points = np.where(boxes.lo == boxes.hi, grid_of(boxes.lo), 0.0).min(0, initial=INF)
            grid = np.minimum(grid, product_grid(points[None], grid_of(turn))[0])
        return _Held(lo, hi, grid)

    def _fits(self, reach: Array, grid: Array) -> NDArray[np.bool_]:
        """Whether sums are exact and stored exactly, from their largest parts of one sign and their grids."""
        need(np.asarray(reach).max(initial=0.0) < self.a.largest, "numbers too large")
        return np.asarray(self.a.stores(reach, grid))

    def _read(self, time: int, states: States) -> None:
        """Every reader of a sub-layer reads pure dimensions only, or exactly."""
        for kind, state in (("tokens", states.tokens), ("bos", states.bos)):
            held = self._held(kind, state)
            for matrix, bias in self.rotated.readers(time):
                mixing = (matrix[self.mixed & (held.size > 0)] != 0).any(0)
                up, down, grid = held.sums(matrix[:, mixing], grid_of(matrix[:, mixing]))
                reach = np.maximum(up + np.maximum(bias[mixing], 0), down + np.maximum(-bias[mixing], 0))
                exact = self._fits(reach, np.minimum(grid, grid_of(bias[mixing])))
                need(exact.all(), "a sum over rotated dimensions is not surely exact", f"layer {time // 2}, reader")

    def _sums(self, held: _Held, sources: Iterable[_Held], matrix: Array, bias: Array) -> tuple[Array, Any]:
        """The sums written into each dimension: the sizes of their terms, and whether they are exact.

        `sources` are ranges of what the rows of the matrix multiply, of which one holds.
        """
        most, exact, grids = np.zeros(len(bias)), np.ones(len(bias), bool), grid_of(matrix)
        for one in sources:
            up, down, grid = one.sums(matrix, grids)
            others = np.abs(bias) + held.size
            untouched = (up == 0) & (down == 0) & (bias == 0)
            grid = np.minimum(np.minimum(grid, held.grid), grid_of(bias))
            exact &= untouched | self._fits(np.maximum(up, down) + others, grid)
            most = np.maximum(most, np.where(untouched, 0.0, up + down + others))
        return most, exact

    def _written(self, time: int, kind: str, size: Array, exact: NDArray[np.bool_]) -> None:
        """What is written into mixed dimensions is exact, or its error, of terms of these sizes, is added to e."""
        read = self.mixed & ~exact & (self.last > time) & (kind != "pad")
        where = "the embedding" if time < 0 else f"layer {time // 2}, {'an MLP' if time % 2 else 'heads'}"
        need(not read.any(), f"what is written into rotated dimension {int(read.argmax())} is not surely exact", where)
        a, terms = self.a, self.terms
        off = 1.01 * ((a.gamma(terms) + 3 * a.storing) * size + 4 * (terms * a.tiny + a.stored_tiny))
        self.errors[kind] = self.errors[kind] + np.where(self.mixed & ~exact, off, 0.0)

    def _blur(self, pad: State) -> Callable[[Array], Read]:
        """What a reader of PAD reads beyond c: of e; and its sum has the products of the rotated dimensions."""
        off, sizes = self.errors["pad"], self._held("pad", pad).size

        def blur(matrix: Array) -> Read:
            turned = np.abs(self.rotation.T @ matrix) + 2.0**-40 * (np.abs(self.rotation.T) @ np.abs(matrix))
            mixing = sizes[self.mixed] @ turned[self.mixed] > 0
            far, size = (np.where(mixing, one @ turned, 0.0)[None] * (1 + 2.0**-30) for one in (off, sizes))
            return Read(-far, far, size, size, 1.0 * len(sizes) * mixing[None], np.where(mixing, 0.0, INF)[None])

        return blur

    def _hidden(self, layer: int, state: State, name: Var) -> Iterator[_Held]:
        """The ranges of hidden values, for each value of a variable ("": for all)."""
        neurons = self.plain.blocks[layer].neurons
        rows = len(state.tables[name].lo) if name else 1
        env = Env(rows, {name: np.arange(rows)} if name else {})
        pre = joined(read_state(state, neurons.w_in, neurons.b_in), env)
        off = rounded(pre, self.a, neurons.b_in)
        high, grid = np.maximum(pre.hi + off, 0.0), np.where(off == 0, pre.grid, 0.0)
        for row in range(rows):
            yield _Held(0 * high[row], high[row], grid[row])

    def _given(self, layer: int, states: States, before: State, after: State) -> _Held:
        """What the components of heads give at a kind of position."""
        block = self.plain.blocks[layer]
        matrix = block.w_o
        reads = [
            [joined(read_state(state, one.w_v, one.b_v)) for one in block.heads] for state in states.kinds.values()
        ]
        sizes = [np.concatenate([np.zeros(0), *(read.size[0] for read in one)]) for one in reads]
        most, grid = np.max(sizes, axis=0), np.zeros(len(matrix))
        alone = ((matrix != 0).sum(0) == 1) & (block.bias == 0) & (before.sizes == 0)
        for label in np.flatnonzero(alone).tolist():
            place = int(np.flatnonzero(matrix[:, label])[0])
            weight = abs(float(matrix[place, label]))
            if weight >= 1 and np.frexp(weight)[0] == 0.5:
                column = [(lo, hi) for lo, hi, _ in after.column(label).values()]
                most[place] = min(most[place], sum(float(farthest(lo, hi).max()) for lo, hi in column) / weight)
                if all((lo == hi).all() for lo, hi in column):
                    grid[place] = min((float(grid_of(lo).min()) for lo, _ in column), default=INF) / weight
        return _Held(-1.02 * most, 1.02 * most, grid)
