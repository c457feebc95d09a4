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

**Clearing**: c relu(w x_j) with w = 2^k or -2^k, k >= 0, and c w = -1 is exactly -x_j where w x_j > 0, else 0 (if
results below `tiny` are flushed, all are, and x_j is not below it). If there is one such neuron for each sign that x_j
has, or x_j is near 0 where there is none, x_j is not part of N: the new content is the sum of the other neurons with
x_j and -x_j, or with what is left, which is x_j where no such neuron is on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import (
    ANYWHERE,
    INF,
    MOST,
    Boxes,
    Read,
    State,
    add_reads,
    bias_read,
    chunks,
    farthest,
    grid_of,
    hull,
    joined,
    natural,
    number_read,
    on_grid,
    read_state,
    rounded,
    row_kinds,
    varying,
)
from tracr_check.piecewise import Relus, bits_of
from tracr_check.variables import Array, Codes, Env, Var
from tracr_check.verdict import need

__all__ = ["Neurons", "Placed", "Work", "after_mlp"]

CLEARED = 1e-3
CHUNK = 3_000_000
Ints = NDArray[np.int64]


@dataclass(eq=False)
class Work:
    """How much all MLPs compute: values of neurons, and groups of neurons that are ranged together."""

    values: int = 0
    groups: int = 0

    def add(self, rows: int, parts: int, columns: list[_Column]) -> None:
        """End the check if it is too much. Each part of the rows evaluates each group, at its kinks too."""
        groups = [len(group) for column in columns for group in column.groups]
        self.groups += parts * len(groups)
        self.values += rows * sum(len(column.neurons) + 1 for column in columns) + parts * sum(n * n for n in groups)
        need(self.values <= 5 * 10**8 and self.groups <= 10**5, "the neurons have too many joint values")


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
    joint values of the names, with the codes of the owner and how many it has; `improve` rewrites what is read in terms
    of other variables. `work` is counted.
    """

    owner: Callable[[int, set[Var]], Var]
    rows: Callable[[set[Var], Var], tuple[Env, Codes, int]]
    improve: Callable[[dict[Var, Read]], dict[Var, Read]] = lambda reads: reads
    work: Work = field(default_factory=Work)


@dataclass(frozen=True, eq=False)
class _Column:
    """A written dimension and its neurons, by places in these: `single` ones, and `groups` that read one number.

    `left`: if it is cleared (by other neurons), the range of what they leave.
    """

    dim: int
    neurons: Ints
    single: Ints
    groups: tuple[Ints, ...]
    left: tuple[float, float] | None = None


def after_mlp(state: State, neurons: Neurons, placed: Placed, arithmetic: Arithmetic) -> State:
    """The state after an MLP. Dimensions that depend on the same variables and have one owner are written together."""
    step = _Step(state, neurons, placed, arithmetic)
    written = np.flatnonzero((neurons.w_out != 0).any(0) | (neurons.b_out != 0)).tolist()
    jobs: dict[tuple[frozenset[Var], Var], list[_Column]] = {}
    for column in map(step.column, written):
        names = step.names(column)
        jobs.setdefault((frozenset(names), placed.owner(column.dim, names)), []).append(column)
    new = state.without(written)
    for (names_of_all, owner), columns in jobs.items():
        new = step.write(new, set(names_of_all), owner, columns)
    return new


class _Step:
    def __init__(self, state: State, neurons: Neurons, placed: Placed, arithmetic: Arithmetic) -> None:
        self.state, self.neurons, self.placed, self.arithmetic = state, neurons, placed, arithmetic
        self.sharp, self.range = state.sharp(neurons.w_in), state.range()
        self.powers = self.powers_of_two()
        self.weights, self.biases, self.rough = self.effective()
        self.directions = _directions(self.weights)
        first, self.kind = row_kinds(neurons.w_in.T)  # neurons with equal weights read the same, but for biases
        self.reads = placed.improve(read_state(state, neurons.w_in[:, first], np.zeros(len(first))))
        self.hulls = {name: hull(read) for name, read in self.reads.items()}
        rounded(self.read(ANYWHERE, np.arange(len(neurons.b_in))), arithmetic)  # none is too large
        self.vary = {name: columns[self.kind] for name, columns in varying(self.reads).items()}

    def read(self, env: Env, neurons: Ints) -> Read:
        """What neurons read at joint values of some variables, with the hull of the others."""
        kinds, places = np.unique(self.kind[neurons], return_inverse=True)
        rows = Env(env.rows, {"": np.arange(env.rows)})
        reads = {name: read if name in env.codes else self.hulls[name] for name, read in self.reads.items()}
        same = joined(reads, env, kinds).at(slice(None), places.reshape(-1))
        return joined({"": same, "1": bias_read(self.neurons.b_in[neurons])}, rows)

    # What is known before joint values are listed

    def powers_of_two(self) -> NDArray[np.bool_]:
        """Neurons that read one dimension with a weight 2^k, k >= 0, and no bias: their product is exact."""
        w, b = self.neurons.w_in, self.neurons.b_in
        alone = ((w != 0).sum(0) == 1) & (b == 0) & self.sharp
        largest = np.abs(w).max(0, initial=0.0)
        return np.asarray(alone & (np.frexp(largest)[0] == 0.5) & (largest >= 1))

    def effective(self) -> tuple[Array, Array, Array]:
        """Weights and biases with the dimensions that hold one number everywhere counted as bias.

        Also the errors of these biases in float64.
        """
        (lo, hi), tables = self.range, np.zeros(self.state.width)
        for boxes in self.state.tables.values():
            tables[boxes.dims] += ((boxes.lo != 0) | (boxes.hi != 0)).any(0)
        fixed = (lo == hi) & (tables <= 1)  # not a sum of several numbers, which may be rounded
        w, b = self.neurons.w_in, self.neurons.b_in
        weights = np.where(fixed[:, None] & self.sharp, 0.0, w)
        used = np.flatnonzero(fixed & (lo != 0))
        products = np.vstack([np.where(self.sharp, lo[used, None] * w[used], 0.0), b[None]])
        size = np.abs(products).sum(0)
        few = (bits_of(lo[used])[:, None] + bits_of(w[used]) <= 53).all(0) | ~self.sharp
        exact = few & (size <= 2.0**52 * grid_of(products).min(0))
        return weights, products.sum(0), np.where(exact, 0.0, (len(products) + 3) * 2.0**-52 * size)

    def column(self, dim: int) -> _Column:
        """A written dimension: is it cleared?"""
        neurons, w = np.flatnonzero(self.neurons.w_out[:, dim]), self.neurons.w_in[dim]
        own = neurons[self.powers[neurons] & (w[neurons] * self.neurons.w_out[neurons, dim] == -1)]
        above, below = (w[own] > 0).sum(), (w[own] < 0).sum()
        lo, hi = (float(end[dim]) for end in self.range)
        left = (0.0 if below else min(lo, 0.0), 0.0 if above else max(hi, 0.0))
        if not len(own) or max(above, below) > 1 or left[1] - left[0] > CLEARED:
            return _Column(dim, neurons, *self.grouped(neurons))
        neurons = np.setdiff1d(neurons, own)
        return _Column(dim, neurons, *self.grouped(neurons), left)

    def grouped(self, neurons: Ints) -> tuple[Ints, tuple[Ints, ...]]:
        """The places of neurons that share their direction with no other one, and groups of those that share it."""
        _, kind, count = np.unique(self.directions[neurons], return_inverse=True, return_counts=True)
        kind = kind.reshape(-1)
        shared = np.flatnonzero((count[kind] > 1) & (self.directions[neurons] >= 0))
        shared = shared[np.argsort(kind[shared], kind="stable")]
        groups = np.split(shared, np.flatnonzero(np.diff(kind[shared])) + 1) if len(shared) else []
        return np.setdiff1d(np.arange(len(neurons)), shared), tuple(groups)

    def names(self, column: _Column) -> set[Var]:
        """The variables that the new content depends on."""
        found = {name for name, vary in self.vary.items() if vary[column.neurons].any()}
        if column.left is None:
            held = self.state.column(column.dim)
            found |= {name for name, (lo, hi, _) in held.items() if (lo != lo[0]).any() or (hi != hi[0]).any()}
        return found

    # By joint values

    def write(self, new: State, names: set[Var], owner: Var, columns: list[_Column]) -> State:
        env, codes, size = self.placed.rows(names, owner)
        need(size * len(columns) <= MOST, f"{size:,} values in {len(columns):,} dimensions")
        neurons = np.unique(np.concatenate([column.neurons for column in columns]))
        low, high, grid = (np.full((size, len(columns)), end) for end in (INF, -INF, INF))
        parts = list(chunks(env.rows, len(neurons), CHUNK))
        self.placed.work.add(env.rows, len(parts), columns)
        for rows in parts:
            part, places = env.at(rows), codes[rows]
            pre = self.read(part, neurons)
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
        return new.plus(owner, Boxes(dims, low, high, grid)).dying(owner, ~seen)

    def values(self, column: _Column, env: Env, at: Ints, pre: Read, off: Array) -> tuple[Array, Array, Array]:
        """Bounds and a grid of the new content of a dimension, row by row.

        What neurons give is off by `wobble`; no grid is known if one of them is off at all.
        """
        a, c, bias = self.arithmetic, self.neurons.w_out[column.neurons, column.dim], self.neurons.b_out[column.dim]
        low, high = self.range_of_sum(column, c, pre.lo[:, at], pre.hi[:, at])
        off = off[:, at]
        active = np.maximum(pre.hi[:, at] + off, 0.0)
        used = active > 0
        wobble = np.where(used, off, 0.0) @ np.abs(c)
        grid = np.where(used & (off == 0), pre.grid[:, at] * grid_of(c), np.where(used, 0.0, INF)).min(1, initial=INF)
        count = used.sum(1) + float(bias != 0)
        up, down = active @ np.maximum(c, 0.0) + max(bias, 0.0), active @ np.maximum(-c, 0.0) + max(-bias, 0.0)
        written = Read(low + bias - wobble, high + bias + wobble, up, down, count, np.minimum(grid, grid_of(bias)))
        held = self.held_terms(column, env) if column.left is None else self.left_terms(column, column.left, count > 0)
        total = add_reads(written, held)
        off_sum = rounded(total, a, bias, np.maximum(held.up, held.down))
        own = (total.count + 3) * 2.0**-50 * total.size  # of this computation
        exact = (total.lo == total.hi) & (np.maximum(total.up, total.down) <= 2.0**52 * total.grid)
        slack, grid = off_sum + np.where(exact, 0.0, own), np.where(off_sum == 0, total.grid, 0.0)
        return *on_grid(total.lo - slack, total.hi + slack, grid), grid

    def held_terms(self, column: _Column, env: Env) -> Read:
        """What the dimension holds, row by row: one number, so one term, which is not 0 if any of its parts is not."""
        lo, hi, count, grid = (np.full(env.rows, end) for end in (0.0, 0.0, 0.0, INF))
        for name, (low, high, part) in self.state.column(column.dim).items():
            if name in env.codes:
                low, high, part = low[env.codes[name]], high[env.codes[name]], part[env.codes[name]]
            else:
                low, high, part = low.min(), high.max(), part.min()
            some = (low != 0) | (high != 0)
            lo, hi, count = lo + low, hi + high, np.maximum(count, some)
            grid = np.where(some, np.minimum(grid, part), grid)
        return number_read(lo, hi, count, grid)

    def left_terms(self, column: _Column, left: tuple[float, float], other: NDArray[np.bool_]) -> Read:
        """The same for a cleared dimension: x and -x are terms of the sum if there are others, else what is left is."""
        lo, hi = (np.full(len(other), end) for end in left)
        size = np.where(other, max(-self.range[0][column.dim], self.range[1][column.dim]), max(-left[0], left[1]))
        step = min((grid.min() for _, _, grid in self.state.column(column.dim).values()), default=INF)
        return Read(lo, hi, size, size, np.where(other, 2.0, size > 0), np.where(other | (size > 0), step, INF))

    def range_of_sum(self, column: _Column, c: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
        """The range of the sum of the neurons, from the ranges of their pre-activations; those of a group together."""
        on_lo, on_hi = (np.maximum(end[:, column.single], 0.0) for end in (lo, hi))
        alone = c[column.single]
        low, high = np.where(alone > 0, on_lo, on_hi) @ alone, np.where(alone > 0, on_hi, on_lo) @ alone
        for group in column.groups:
            one = self.range_of_group(column.neurons[group], c[group], lo[:, group[0]], hi[:, group[0]])
            low, high = low + one[0], high + one[1]
        return low, high

    def range_of_group(self, hs: Ints, c: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
        """The same for neurons that read one number, from the range of the first pre-activation."""
        place = np.flatnonzero(self.weights[:, hs[0]])[0]
        w, b, rough = self.weights[place, hs], self.biases[hs], float(self.rough[hs].max())
        ends = np.stack([(lo - b[0]) / w[0], (hi - b[0]) / w[0]])
        wide = ((farthest(lo, hi) + abs(b[0])) * 2.0**-50 + rough) / abs(w[0])
        return Relus(w, b, c, rough).range(ends.min(0) - wide, ends.max(0) + wide)


def _directions(weights: Array) -> Ints:
    """A number for the direction that each neuron reads, equal only for neurons whose weights are exactly parallel.

    Weights are divided by a power of two and the sign of the first one, which is exact. Neurons that read constants
    only have negative numbers. Directions that are not found to be equal are ranged one by one.
    """
    lead = weights[(weights != 0).argmax(0), np.arange(weights.shape[1])]
    power = np.copysign(np.ldexp(1.0, np.frexp(lead)[1]), lead)
    return np.where(lead == 0, -1, row_kinds((weights / power).T)[1])
