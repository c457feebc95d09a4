"""An MLP: what it writes into each dimension, as boxes by the value of the dimension's owner.

For a dimension j, x_j becomes x_j + sum over h of c_h relu(pre_h) + b. The hint names an owner. **Rule**: let N be the
variables that x_j and the neurons with c_h != 0 depend on (`varies`; others enter with their hull). Every stream that
occurs has joint values of N that `joint_values` lists, so the new x_j lies in the hull, over the listed joint values
with the same value of the owner, of the range at these values. A value of the owner that no listed row has does not
occur (`dead`). A wrong owner makes hulls wide, never wrong.

The range at joint values: neurons whose weights are parallel read one number xi (up to its factor) and are ranged
together by `Relus`, so that errors of xi cancel as they do in the network; clusters are added. Computed values differ:
pre_h by `rounded`, which relu does not increase and c_h multiplies; and the sum over h with x_j and b, by gamma of the
number of terms, or by nothing where all are multiples of a grid and few enough: then so is the new x_j, and bounds of
it end at multiples of the grid.

If the neurons that read only x_j leave (with x_j itself) almost nothing, the dimension is cleared: then x_j is not
part of N.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, Boxes, Read, State, grid_of, joined, natural, on_grid, read_state, rounded, varying
from tracr_check.piecewise import Relus, bits_of
from tracr_check.variables import Array, Codes, Env, Var
from tracr_check.verdict import need

__all__ = ["Neurons", "Placed", "after_mlp"]

CLEARED = 1e-3
CHUNK = 3_000_000
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Neurons:
    """The weights of an MLP."""

    w_in: Array
    b_in: Array
    w_out: Array
    b_out: Array


@dataclass(frozen=True, eq=False)
class Placed:
    """How the joint values of a kind of position are enumerated, and the codes of an owner.

    `owner(dimension, names)` is the owner of a dimension that depends on these variables; `rows(names, owner)` lists
    joint values of the names with the codes of the owner; `sizes(owner)` is how many values it has; `improve` rewrites
    what is read in terms of other variables. `mortal`: a value that no row has does not occur.
    """

    owner: Callable[[int, set[Var]], Var]
    rows: Callable[[set[Var], Var], tuple[Env, Codes]]
    sizes: Callable[[Var], int]
    improve: Callable[[dict[Var, Read]], dict[Var, Read]]
    mortal: bool


@dataclass(frozen=True, eq=False)
class _Column:
    """A written dimension: its neurons, and if it is cleared, the range of the rest and the size of what was there."""

    dim: int
    neurons: Ints
    cleared: bool
    left: tuple[float, float]
    held: float
    own: Ints


def after_mlp(state: State, neurons: Neurons, placed: Placed, arithmetic: Arithmetic) -> State:
    """The state after an MLP."""
    return _Step(state, neurons, placed, arithmetic).run()


class _Step:
    def __init__(self, state: State, neurons: Neurons, placed: Placed, arithmetic: Arithmetic) -> None:
        self.state, self.neurons, self.placed, self.arithmetic = state, neurons, placed, arithmetic
        reads = read_state(state, neurons.w_in, neurons.b_in)
        self.sharp, self.range = state.sharp(neurons.w_in), state.range()
        self.powers = self.powers_of_two()
        self.weights, self.biases, self.rough, self.bias_sizes = self.effective()
        self.directions = [self.direction(h) for h in range(len(neurons.b_in))]
        self.reads = placed.improve(reads)
        rounded(joined(self.reads, (), Env(1, {}), np.arange(len(neurons.b_in))), arithmetic)  # none is too large
        self.vary = varying(self.reads)

    def run(self) -> State:
        written = np.flatnonzero((self.neurons.w_out != 0).any(0) | (self.neurons.b_out != 0))
        jobs: dict[tuple[frozenset[Var], Var], list[_Column]] = {}
        for dim in written.tolist():
            column = self.column(dim)
            needed = self.names(column)
            jobs.setdefault((frozenset(needed), self.placed.owner(dim, needed)), []).append(column)
        new = self.state.without(written.tolist())
        for (names, owner), columns in jobs.items():
            new = self.write(new, set(names), owner, columns)
        return new

    # What is known before joint values are listed

    def powers_of_two(self) -> NDArray[np.bool_]:
        """Neurons that read one dimension with a weight 2^k, k >= 0, and no bias: their product is exact."""
        w, b = self.neurons.w_in, self.neurons.b_in
        alone = ((w != 0).sum(0) == 1) & (b == 0) & self.sharp
        largest = np.abs(w).max(0, initial=0.0)
        return np.asarray(alone & (np.frexp(largest)[0] == 0.5) & (largest >= 1))

    def effective(self) -> tuple[Array, Array, Array, Array]:
        """Weights and biases with the dimensions that hold one number everywhere counted as bias.

        Also the errors of these biases in float64, and the sizes of the terms that they are sums of: the network adds
        these terms, and rounds beside them.
        """
        (lo, hi), tables = self.range, np.zeros(self.state.width)
        for boxes in self.state.tables.values():
            tables[boxes.dims] += ((boxes.lo != 0) | (boxes.hi != 0)).any(0)
        fixed = (lo == hi) & (tables <= 1)  # not a sum of several numbers, which may be rounded
        w, b = self.neurons.w_in, self.neurons.b_in
        weights = np.where(fixed[:, None] & self.sharp, 0.0, w)
        used = np.flatnonzero(fixed & (lo != 0))
        constants = np.where(self.sharp, lo[used, None], 0.0)
        products = np.vstack([constants * w[used], b[None]])
        size = np.abs(products).sum(0)
        few = (bits_of(constants) + bits_of(w[used]) <= 53).all(0)
        exact = few & (size <= 2.0**52 * grid_of(products).min(0))
        return weights, products.sum(0), np.where(exact, 0.0, (len(products) + 3) * 2.0**-52 * size), size

    def direction(self, h: int) -> tuple[object, ...]:
        """The direction that a neuron reads; equal for neurons whose weights are exactly parallel."""
        w = self.weights[:, h]
        places = np.flatnonzero(w)
        if not len(places):
            return ("none",)
        ratio = w[places] / w[places[0]]
        parallel = (bits_of(ratio) + bits_of(w[places[0]]) <= 53).all() and (ratio * w[places[0]] == w[places]).all()
        return (places.tobytes(), ratio.tobytes()) if parallel else ("alone", h)

    def column(self, dim: int) -> _Column:
        """A written dimension: is it cleared?"""
        out, w = self.neurons.w_out[:, dim], self.weights
        neurons = np.flatnonzero(out)
        lo, hi = (float(end[dim]) for end in self.range)
        own = neurons[(w[dim, neurons] != 0) & ((w[:, neurons] != 0).sum(0) == 1) & self.sharp[neurons]]
        size = max(abs(lo), abs(hi))
        if len(own):
            left = self.left(dim, own, lo, hi)
            if left[1] - left[0] <= CLEARED:
                return _Column(dim, np.setdiff1d(neurons, own), True, left, size, own)
        return _Column(dim, neurons, False, (0.0, 0.0), size, own[:0])

    def left(self, dim: int, own: Ints, lo: float, hi: float) -> tuple[float, float]:
        """What x_j and the neurons that read only x_j (and constants) leave, rounding included.

        Each term passes through the roundings of its neuron's sum, of the sum over neurons and of the stream.
        x - x is exact: if every neuron multiplies by 2^k, k >= 0, and for each sign one neuron is on and gives x back
        with the other sign, then each sum has two terms, x and -x. (Either all results below `tiny` are flushed or
        none: in the first case x is not below `tiny`.)
        """
        w, b, c = self.weights[dim, own], self.biases[own], self.neurons.w_out[own, dim]
        relus = Relus(w, b, c, float(self.rough[own].max(initial=0.0)), 1.0)
        low, high = (float(end[0]) for end in relus.range(np.array([lo]), np.array([hi])))
        one_each = all((w * sign > 0).sum() <= 1 for sign in (1, -1))
        if self.powers[own].all() and one_each and (w * c == -1).all():
            signs = ((w > 0).any() or hi <= 0) and ((w < 0).any() or lo >= 0)
            if signs:
                return 0.0, 0.0
        terms = np.abs(c) * (np.abs(w) * max(abs(lo), abs(hi)) + self.bias_sizes[own])
        size = max(abs(lo), abs(hi)) + float(terms.sum())
        a, roundings = self.arithmetic, float((self.neurons.w_in[:, own] != 0).sum(0).max()) + len(own) + 4
        stored = 4 * (a.stored_unit if a.narrow else 0.0)
        off = (a.gamma(roundings) + stored) * 2 * size + 4 * roundings * a.stored_tiny * (1 + float(np.abs(c).sum()))
        return low - off, high + off

    def names(self, column: _Column) -> set[Var]:
        """The variables that the new content depends on."""
        found = {name for name, vary in self.vary.items() if vary[column.neurons].any()}
        if not column.cleared:
            held = self.state.column(column.dim)
            found |= {name for name, (lo, hi, _) in held.items() if (lo != lo[0]).any() or (hi != hi[0]).any()}
        return found

    # By joint values

    def write(self, new: State, names: set[Var], owner: Var, columns: list[_Column]) -> State:
        env, codes = self.placed.rows(names, owner)
        size = self.placed.sizes(owner)
        neurons = np.unique(np.concatenate([column.neurons for column in columns]))
        low, high, grid = (np.full((size, len(columns)), end) for end in (INF, -INF, INF))
        step = max(1, CHUNK // max(1, len(neurons)))
        for start in range(0, env.rows, step):
            rows = slice(start, start + step)
            part, places = env.at(rows), codes[rows]
            pre = joined(self.reads, set(env.codes), part, neurons)
            off = np.where(self.powers[neurons], 0.0, rounded(pre, self.arithmetic, self.neurons.b_in[neurons]))
            for place, column in enumerate(columns):
                lo, hi, known = self.values(column, part, np.searchsorted(neurons, column.neurons), pre, off)
                np.minimum.at(low[:, place], places, lo)
                np.maximum.at(high[:, place], places, hi)
                np.minimum.at(grid[:, place], places, known)
        seen = ~(low == INF).any(1)
        need(np.isfinite(low[seen]).all() and np.isfinite(high[seen]).all(), "numbers too large")
        need(seen.any(), "no input reaches this MLP")
        low[~seen], high[~seen] = 0.0, 0.0
        dims = np.array([column.dim for column in columns], dtype=np.int64)
        grid = np.maximum(grid, natural(low, high, self.arithmetic.stored_bits))
        new = new.plus(owner, Boxes(dims, low, high, grid))
        return new.dying(owner, ~seen) if self.placed.mortal else new

    def values(self, column: _Column, env: Env, at: Ints, pre: Read, off: Array) -> tuple[Array, Array, Array]:
        """Bounds and a grid of the new content of a dimension, row by row."""
        a, c, bias = self.arithmetic, self.neurons.w_out[column.neurons, column.dim], self.neurons.b_out[column.dim]
        low, high = np.zeros(env.rows), np.zeros(env.rows)
        for group in self.clusters(column.neurons):
            one = self.cluster_range(column.neurons[group], c[group], pre.lo[:, at[group]], pre.hi[:, at[group]])
            low, high = low + one[0], high + one[1]
        active = np.maximum(pre.hi[:, at] + off[:, at], 0.0)
        used = active > 0
        wobble = np.where(used, off[:, at], 0.0) @ np.abs(c)
        up = active @ np.maximum(c, 0.0) + max(bias, 0.0)
        down = active @ np.maximum(-c, 0.0) + max(-bias, 0.0)
        count = used.sum(1) + float(bias != 0)
        known = used & (off[:, at] == 0)
        grid = np.where(known, pre.grid[:, at] * grid_of(c), np.where(used, 0.0, INF)).min(1, initial=INF)
        grid = np.minimum(grid, grid_of(bias))
        simple = (count <= 1) & (wobble == 0) & bool((np.frexp(np.abs(c))[0] == 0.5).all() and (np.abs(c) >= 1).all())
        held = self.cleared_terms(column, count > 0) if column.cleared else self.held_terms(column, env)
        simple = simple & (held[5] == 0)
        low, high, up, down = low + held[0] + bias, high + held[1] + bias, up + held[2], down + held[3]
        total = Read(low, high, up, down, count + held[5], np.minimum(grid, held[4]))
        off_sum = np.where(simple, 0.0, rounded(total, a, bias, np.maximum(held[2], held[3])))
        own = (count + held[5] + 3) * 2.0**-50 * (up + down)
        exact = (low == high) & (np.maximum(up, down) <= 2.0**52 * total.grid) & (wobble == 0)
        slack = wobble + off_sum + np.where(exact | simple, 0.0, own)
        sharp = (wobble + off_sum == 0) & (column.left == (0.0, 0.0))
        grid = np.where(sharp, total.grid, 0.0)
        return *on_grid(low - slack, high + slack, grid), grid

    def held_terms(self, column: _Column, env: Env) -> tuple[Array, ...]:
        """What the dimension holds: lo, hi, up, down, grid and number of terms, row by row."""
        lo, hi, grid = np.zeros(env.rows), np.zeros(env.rows), np.full(env.rows, INF)
        count = np.zeros(env.rows)
        for name, (low, high, part) in self.state.column(column.dim).items():
            if name in env.codes:
                low, high, part = low[env.codes[name]], high[env.codes[name]], part[env.codes[name]]
            else:
                low, high, part = low.min(), high.max(), part.min()
            some = (low != 0) | (high != 0)
            lo, hi, count = lo + low, hi + high, np.maximum(count, some)
            grid = np.where(some, np.minimum(grid, part), grid)
        return lo, hi, np.maximum(hi, 0.0), np.maximum(-lo, 0.0), grid, count

    def cleared_terms(self, column: _Column, other: NDArray[np.bool_]) -> tuple[Array, ...]:
        """The same for a cleared dimension: x and what clears it are terms of the sum if there are others."""
        zero = np.zeros(len(other))
        c, w = np.abs(self.neurons.w_out[column.own, column.dim]), np.abs(self.weights[column.dim, column.own])
        size = column.held + float((c * (w * column.held + np.abs(self.biases[column.own]))).sum())
        grids = [part[2].min() for part in self.state.column(column.dim).values()]
        exact = column.left == (0.0, 0.0)  # the two terms x and -x
        size = column.held if exact else size
        grid = min(grids, default=INF) if exact else 0.0
        terms = np.where(other, size, 0.0)
        count = np.where(other, 1.0 + len(column.own), 0.0 if exact else 1.0)
        return zero + column.left[0], zero + column.left[1], terms, terms, np.where(other, grid, INF), count

    def clusters(self, neurons: Ints) -> Iterable[Ints]:
        groups: dict[tuple[object, ...], list[int]] = {}
        for place, h in enumerate(neurons.tolist()):
            groups.setdefault(self.directions[h], []).append(place)
        return [np.array(group) for group in groups.values()]

    def cluster_range(self, hs: Ints, c: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
        """The range of a sum of neurons that read one number, from the ranges of their pre-activations."""
        lead = self.weights[:, hs[0]]
        places = np.flatnonzero(lead)
        if len(hs) == 1 or not len(places):
            on_lo, on_hi = np.maximum(lo, 0.0), np.maximum(hi, 0.0)
            return np.where(c > 0, on_lo, on_hi) @ c, np.where(c > 0, on_hi, on_lo) @ c
        w, b = self.weights[places[0], hs], self.biases[hs]
        rough = float(self.rough[hs].max(initial=0.0))
        ends = np.stack([(lo[:, 0] - b[0]) / w[0], (hi[:, 0] - b[0]) / w[0]])
        size = (np.maximum(np.abs(lo[:, 0]), np.abs(hi[:, 0])) + abs(b[0])) * 2.0**-50 + rough
        wide = size / abs(w[0])
        return Relus(w, b, c, rough).range(ends.min(0) - wide, ends.max(0) + wide)
