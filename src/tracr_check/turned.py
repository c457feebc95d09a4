"""Rotated models: the stream is c R for an orthogonal matrix R, where c is the stream of a plain network.

The hint is R, one row for each label. R is checked to be orthogonal, exactly: R R^T = I. The plain network has the
readers R M' and the writers W' R^T, for the readers M' and writers W' of the rotated one; all products are exact here.
So any R gives *some* plain network that computes the same in exact arithmetic, and a wrong hint only gives one that is
not proved. This module shows that the rotated network does the same in the named arithmetic too.

A dimension is *pure* if it holds one label, with the factor 1 or -1. Other dimensions are *mixed*.

**Lemma.** Suppose that in every execution of the rotated network

1. each sum that a reader computes reads pure dimensions only, or is exact;
2. each sum written into a mixed dimension is exact, unless only the unembedding reads the dimension afterwards.

Then for every execution of the rotated network there is an execution of the plain network, within the bounds that its
proof uses, with the same queries, keys, values and neurons, and with streams c such that the rotated stream is c R + e.
e is 0 but in dimensions as in the second half of 2, where it is at most the sum of the errors of their sums.
PAD need not satisfy 1 and 2: its boxes are widened by the errors of what is written, and `blur` bounds those of reads.

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
from tracr_check.boxes import INF, Boxes, Read, State, grid_of, joined, read_state, rounded
from tracr_check.following import Follower
from tracr_check.head import States
from tracr_check.rotation import times
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
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    def sums(self, matrix: Array, grids: Array) -> tuple[Array, Array, Array]:
        """For sums of products with columns of a matrix (its grids): the most of each sign, a grid of the products."""
        above, below, some = np.maximum(self.hi, 0.0), np.maximum(-self.lo, 0.0), (self.lo != 0) | (self.hi != 0)
        plus, minus = np.maximum(matrix, 0.0), np.maximum(-matrix, 0.0)
        up, down = above @ plus + below @ minus, above @ minus + below @ plus
        there = some[:, None] & (matrix != 0)
        grid = times(self.grid[:, None], grids, there).min(0, initial=INF)
        return up * (1 + 2.0**-30), down * (1 + 2.0**-30), grid


class Turned(Follower):
    """Follows the proof of the plain network of a rotated one."""

    def __init__(self, rotated: Any, plain: Any, rotation: Array, a: Arithmetic) -> None:
        self.rotated, self.plain, self.rotation, self.a = rotated, plain, rotation, a
        self.mixed = (np.abs(rotation) == 1).sum(0) != 1
        self.labels = (rotation[:, self.mixed] != 0).any(1)  # that they hold
        self.errors, self.work = np.zeros(len(rotation)), WORK
        sizes = [max(sum(len(one.w_o) for one in heads), len(neurons.b_in)) for heads, _, neurons in rotated.blocks]
        self.terms = 4 + max(sizes, default=0)  # more roundings than any product goes through
        self.last = np.full(len(rotation), -1)
        for layer, (heads, _, neurons) in enumerate(rotated.blocks):
            for one in heads:
                self.last[np.hstack([one.w_q, one.w_k, one.w_v]).any(1)] = 2 * layer
            self.last[neurons.w_in.any(1)] = 2 * layer + 1

    def embedded(self, states: States) -> States:
        """The sum of two rows: of the token and of the position."""
        tokens, positions = (np.abs(one) for one in (self.rotated.embed, self.rotated.positions))
        grid = np.minimum(grid_of(tokens).min(0), grid_of(positions).min(0))
        alone, size = (tokens == 0).all(0) | (positions == 0).all(0), tokens.max(0) + positions.max(0)
        self._written(-1, size, alone | self._fits(size, grid))
        none = np.zeros(len(size))
        return self._seen(0, states if states.pad is None else self._padded(states, (none, none == 0)))

    def attended(self, layer: int, before: States, after: States) -> States:
        """The writes of heads, and what the MLP reads."""
        heads, bias, _ = self.rotated.blocks[layer]
        matrix = np.vstack([one.w_o for one in heads]) if heads else np.zeros((0, len(bias)))
        for old, new in ((before.tokens, after.tokens), (before.bos, after.bos)):
            given = self._given(layer, before, old, new)
            self._written(2 * layer, *self._sums(self._held(old), [given], matrix, bias))
        if before.pad is not None and after.pad is not None:
            given = self._given(layer, before, before.pad, after.pad)
            after = self._padded(after, self._sums(self._held(before.pad), [given], matrix, bias))
        return self._seen(2 * layer + 1, after)

    def transformed(self, layer: int, before: States, after: States) -> States:
        """The writes of neurons, and what the next heads read."""
        neurons = self.rotated.blocks[layer][2]
        for old in (before.tokens, before.bos):
            held = self._held(old)
            size, exact = self._sums(held, self._hidden(layer, old, ""), neurons.w_out, neurons.b_out)
            for name, boxes in old.tables.items():  # value by value, if that is not enough, and not too much work
                work = len(boxes.lo) * neurons.w_out.size
                if (self.mixed & ~exact).any() and work <= self.work:
                    self.work -= work
                    exact = exact | self._sums(held, self._hidden(layer, old, name), neurons.w_out, neurons.b_out)[1]
            self._written(2 * layer + 1, size, exact)
        if before.pad is not None:
            hidden = self._hidden(layer, before.pad, "")
            after = self._padded(after, self._sums(self._held(before.pad), hidden, neurons.w_out, neurons.b_out))
        return self._seen(2 * layer + 2, after)

    def logits(self, states: States, unembed: Array) -> tuple[Array, Array]:
        """The errors of the dimensions, and those of the sums."""
        matrix = self.rotated.unembed
        size = self._held(states.tokens).size @ np.abs(matrix)
        need(size.max(initial=0.0) < self.a.largest, "numbers too large")
        own = np.where((matrix[self.mixed] != 0).any(0), self.a.gamma((matrix != 0).sum(0) + 2.0) * size, 0.0)
        narrow = self.a.stored_unit * 2 * size + self.a.stored_tiny if self.a.narrow else 0.0
        lost = 2 * (len(matrix) + 2) * self.a.tiny * (own > 0)
        found = (self.errors @ np.abs(matrix) + own + narrow) * (1 + 2.0**-30) + lost
        return 0.0 * found, found

    # One sub-layer

    def _seen(self, time: int, states: States) -> States:
        """The states for the readers at a time, all of which are right about them."""
        pad = None if states.pad is None else self._unstored(states.pad)
        found = States(self._unstored(states.tokens), self._unstored(states.bos), pad)
        self._read(time, found)
        return found

    def _unstored(self, state: State) -> State:
        """A state whose labels in mixed dimensions need not be numbers of the format: only points have grids."""
        tables = {}
        for name, boxes in state.tables.items():
            unknown = self.labels[boxes.dims] & (boxes.lo != boxes.hi)
            tables[name] = replace(boxes, grid=np.where(unknown, 0.0, boxes.grid))
        return replace(state, tables=tables)

    def _held(self, state: State) -> _Held:
        """What the dimensions hold: c R, variable by variable; with the errors so far."""
        lo, hi, grid = -self.errors, self.errors.copy(), np.where(self.errors > 0, 0.0, INF)
        for boxes in state.tables.values():
            turn = self.rotation[boxes.dims]
            middle, radius = (boxes.lo + boxes.hi) / 2, (boxes.hi - boxes.lo) / 2
            slack = 2.0**-40 * (np.maximum(np.abs(boxes.lo), np.abs(boxes.hi)) @ np.abs(turn))
            low, high = middle @ turn - radius @ np.abs(turn), middle @ turn + radius @ np.abs(turn)
            lo, hi = lo + (low - slack).min(0), hi + (high + slack).max(0)
            points = np.where(boxes.lo == boxes.hi, grid_of(boxes.lo), 0.0).min(0, initial=INF)
            grid = np.minimum(grid, times(points[:, None], grid_of(turn), turn != 0).min(0, initial=INF))
        return _Held(lo, hi, grid)

    def _fits(self, reach: Array, grid: Array) -> NDArray[np.bool_]:
        """Whether sums are exact and stored exactly, from their largest parts of one sign and their grids."""
        need(np.asarray(reach).max(initial=0.0) < self.a.largest, "numbers too large")
        return np.asarray(self.a.stores(reach, grid))

    def _read(self, time: int, states: States) -> None:
        """Every reader of a sub-layer reads pure dimensions only, or exactly."""
        layer, is_mlp = divmod(time, 2)
        if layer >= len(self.rotated.blocks):
            return
        heads, _, neurons = self.rotated.blocks[layer]
        readers = [(one.w_q, one.b_q) for one in heads] + [(one.w_k, one.b_k) for one in heads]
        readers = [(neurons.w_in, neurons.b_in)] if is_mlp else readers + [(one.w_v, one.b_v) for one in heads]
        for state in (states.tokens, states.bos):
            held = self._held(state)
            for matrix, bias in readers:
                mixing = (matrix[self.mixed & (held.size > 0)] != 0).any(0)
                up, down, grid = held.sums(matrix[:, mixing], grid_of(matrix[:, mixing]))
                reach = np.maximum(up + np.maximum(bias[mixing], 0), down + np.maximum(-bias[mixing], 0))
                exact = self._fits(reach, np.minimum(grid, grid_of(bias[mixing])))
                need(exact.all(), "a sum over rotated dimensions is not surely exact", f"layer {layer}, reader")

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

    def _off(self, size: Array, exact: NDArray[np.bool_]) -> Array:
        """The errors of sums into mixed dimensions, from the sizes of their terms."""
        a, terms = self.a, self.terms
        off = (a.gamma(terms) + (3 * a.stored_unit if a.narrow else 0.0)) * size + 2 * terms * a.stored_tiny
        return np.where(self.mixed & ~exact, 1.01 * off, 0.0)

    def _written(self, time: int, size: Array, exact: NDArray[np.bool_]) -> None:
        """What is written into mixed dimensions is exact, or its error is added to those of the dimensions."""
        read = self.mixed & ~exact & (self.last > time)
        where = "the embedding" if time < 0 else f"layer {time // 2}, {'an MLP' if time % 2 else 'heads'}"
        need(not read.any(), f"what is written into rotated dimension {int(read.argmax())} is not surely exact", where)
        self.errors = self.errors + self._off(size, exact)

    def _padded(self, states: States, sums: tuple[Array, Any]) -> States:
        """The states with PAD as the rotated network has it."""
        assert states.pad is not None
        pad, off = states.pad, self._off(*sums) @ np.abs(self.rotation.T)
        boxes = pad.tables["P"]
        dims = np.flatnonzero(off)
        new, wide = dims[~np.isin(dims, boxes.dims)], off[boxes.dims]
        grid = np.where(wide > 0, 0.0, boxes.grid)
        boxes = Boxes(boxes.dims, boxes.lo - wide, boxes.hi + wide, grid)
        more = np.broadcast_to(off[new], (len(boxes.lo), len(new)))
        boxes = boxes.beside(Boxes(new, -more, more, 0 * more))
        return replace(states, pad=replace(pad, tables={**pad.tables, "P": boxes}, blur=self._blur(boxes, pad)))

    def _blur(self, boxes: Boxes, pad: State) -> Callable[[Array], Read]:
        """How far a reader of PAD is off: its sum has the products of the rotated dimensions."""
        sizes = self._held(replace(pad, tables={**pad.tables, "P": boxes})).size

        def blur(matrix: Array) -> Read:
            turned = np.abs(self.rotation.T @ matrix) + 2.0**-40 * (np.abs(self.rotation.T) @ np.abs(matrix))
            pure = sizes[self.mixed] @ turned[self.mixed] == 0
            size = np.where(pure, 0.0, sizes @ turned)[None]
            zero = 0 * size
            return Read(zero, zero, size, size, zero + len(sizes) * ~pure, np.where(pure, INF, zero))

        return blur

    def _hidden(self, layer: int, state: State, name: Var) -> Iterator[_Held]:
        """The ranges of hidden values, for each value of a variable ("": for all)."""
        neurons = self.plain.blocks[layer][2]
        rows = len(state.tables[name].lo) if name else 1
        env = Env(rows, {name: np.arange(rows)} if name else {})
        pre = joined(read_state(state, neurons.w_in, neurons.b_in), env)
        off = rounded(pre, self.a, neurons.b_in)
        high, grid = np.maximum(pre.hi + off, 0.0), np.where(off == 0, pre.grid, 0.0)
        for row in range(rows):
            yield _Held(0 * high[row], high[row], grid[row])

    def _given(self, layer: int, states: States, before: State, after: State) -> _Held:
        """What the components of heads give at a kind of position."""
        heads, bias, _ = self.plain.blocks[layer]
        matrix = np.vstack([one.w_o for one in heads]) if heads else np.zeros((0, len(bias)))
        most = np.zeros(len(matrix))
        for state in (states.tokens, states.bos, states.pad):
            if state is None:
                continue
            read = [joined(read_state(state, h.w_v, h.b_v)) for h in heads]
            sizes = [one.size[0] for one in read]
            most = np.maximum(most, np.concatenate(sizes) if sizes else most)
        grid = np.zeros(len(matrix))
        alone = ((matrix != 0).sum(0) == 1) & (bias == 0) & (before.sizes == 0)
        for label in np.flatnonzero(alone).tolist():
            place = int(np.flatnonzero(matrix[:, label])[0])
            weight = abs(float(matrix[place, label]))
            if weight >= 1 and np.frexp(weight)[0] == 0.5:
                column = list(after.column(label).values())
                size = sum(float(np.maximum(np.abs(lo), np.abs(hi)).max()) for lo, hi, _ in column)
                points = all((lo == hi).all() for lo, hi, _ in column)
                most[place] = min(most[place], size / weight)
                if points:
                    grid[place] = min([float(grid_of(lo).min()) for lo, _, _ in column], default=INF) / weight
        return _Held(-1.02 * most, 1.02 * most, grid)
