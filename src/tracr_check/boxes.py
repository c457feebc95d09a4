"""The state of the stream as boxes, what a matrix reads of it, and how much a computed sum can be off.

At a position that holds a token, the stream is x = sum over variables v of E_v[value of v at the position]. E_v is a
table [value, dimension] of boxes (lo, hi, grid): the number is between lo and hi and a multiple of grid (a power of
two; infinite for an exact 0, 0 if nothing is known). The variable "1" has one value.

The checker computes in float64, whose own rounding is covered: a sum of k products with sizes that add up to s is off
by at most (k + 3) 2^-52 s, and by nothing if all products are multiples of g and s <= 2^52 g.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.variables import Array, Env, Var
from tracr_check.verdict import need

__all__ = [
    "ANYWHERE",
    "INF",
    "Boxes",
    "Read",
    "State",
    "add_reads",
    "bias_read",
    "chunks",
    "exactly",
    "farthest",
    "grid_of",
    "hull",
    "joined",
    "natural",
    "number_read",
    "on_grid",
    "product_grid",
    "read_state",
    "rounded",
    "row_kinds",
    "signed_sums",
    "varying",
]

INF = np.inf
CELLS = 60_000_000  # of the largest array of products
MANY = 2**17  # rows
MOST = 2**25  # numbers of a table, or of what columns read of it
WORK = 2**34  # products of what columns read of a table
ANYWHERE = Env(1, {})  # no variable is known


def grid_of(numbers: Any) -> Array:
    """The largest power of two that divides each number; infinite for 0.

    >>> grid_of([6.0, 0.75, 0.0]).tolist()
    [2.0, 0.25, inf]
    """
    mantissa, exponent = np.frexp(np.asarray(numbers, dtype=np.float64))
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    return np.where(whole == 0, INF, np.ldexp((whole & -whole).astype(np.float64), exponent - 53))


def farthest(lo: Array, hi: Array) -> Array:
    """The largest absolute value of numbers between lo and hi."""
    return np.maximum(np.abs(lo), np.abs(hi))


def chunks(rows: int, cells: int, most: int) -> Iterator[slice]:
    """All rows, so many at a time that those of one chunk have at most so many cells; `cells`: of a row."""
    step = max(1, most // max(1, cells))
    return (slice(start, start + step) for start in range(0, rows, step))


def row_kinds(rows: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of all rows with the same numbers, and for each row the place of its own among these.

    >>> [found.tolist() for found in row_kinds(np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0]]))]
    [[0, 1], [0, 1, 0]]
    """
    if len(rows) > MANY:  # a dictionary would take too much memory
        _, first, kinds = np.unique(rows + 0.0, axis=0, return_index=True, return_inverse=True)
        return first, kinds.reshape(-1)
    known: dict[bytes, int] = {}
    kinds = np.array(
        [known.setdefault(row.tobytes(), len(known)) for row in np.ascontiguousarray(rows) + 0.0], dtype=np.int64
    )
    return np.unique(kinds, return_index=True)[1], kinds


def on_grid(lo: Array, hi: Array, grid: Array) -> tuple[Array, Array]:
    """Bounds of a multiple of a grid between lo and hi; the same bounds if the grid is not known (0).

    >>> on_grid(np.array([0.9, -1.0]), np.array([1.6, 1.0]), np.array([0.5, INF]))
    (array([1., 0.]), array([1.5, 0. ]))
    """
    known = (grid > 0) & np.isfinite(grid)
    step = np.where(known, grid, 1.0)
    low, high = (np.where(known, end * step, 0.0) for end in (np.ceil(lo / step), np.floor(hi / step)))
    fine = (grid > 0) & (lo <= low) & (low <= high) & (high <= hi)
    fine &= np.isinf(grid) | (farthest(lo, hi) <= 2.0**52 * step)
    return np.where(fine, low, lo), np.where(fine, high, hi)


def natural(lo: Array, hi: Array, bits: int) -> Array:
    """The grid of the floats of so many bits between lo and hi.

    A point has its own grid. Numbers of one sign with a size of at least 2^(e - 1) are multiples of 2^(e - bits).
    """
    least = np.where((lo > 0) | (hi < 0), np.minimum(np.abs(lo), np.abs(hi)), 0.0)
    exponent = np.frexp(least)[1]
    return np.where(lo == hi, grid_of(lo), np.where(least > 0, np.ldexp(1.0, exponent - bits), 0.0))


@dataclass(frozen=True, eq=False)
class Boxes:
    """A table [value, dimension] of boxes, for some dimensions only; the others hold exact zeros."""

    dims: NDArray[np.int64]
    lo: Array
    hi: Array
    grid: Array

    def at(self, columns: NDArray[np.bool_]) -> Boxes:
        """Only some dimensions."""
        return Boxes(self.dims[columns], self.lo[:, columns], self.hi[:, columns], self.grid[:, columns])

    def beside(self, other: Boxes) -> Boxes:
        """With the dimensions of another table, which must be different ones."""
        parts = (np.hstack(pair) for pair in ((self.lo, other.lo), (self.hi, other.hi), (self.grid, other.grid)))
        return Boxes(np.concatenate([self.dims, other.dims]), *parts)


def exactly(numbers: Array) -> Boxes:
    """A table of exact numbers, in the dimensions that are not 0 everywhere."""
    dims = np.flatnonzero((numbers != 0).any(0))
    kept = numbers[:, dims]
    return Boxes(dims, kept, kept, grid_of(kept))


@dataclass(frozen=True, eq=False)
class State:
    """What the stream holds, and the values of variables that do not occur (`dead`).

    `blur`: what readers of a variant see beyond what the stream holds, from their matrix (`following.py`): a range of
    one number for all columns that are multiples of one column, and products without a grid. `grain`: besides, they see
    each number up to this relative error, the same for all readers.
    """

    width: int
    tables: Mapping[Var, Boxes]
    dead: Mapping[Var, NDArray[np.bool_]] = field(default_factory=dict)
    blur: Callable[[Array], Read] | None = None
    grain: float = 0.0

    def column(self, dim: int) -> dict[Var, tuple[Array, Array, Array]]:
        """For every variable that the dimension depends on: lo, hi and grid by value."""
        return self._columns.get(dim, {})

    @cached_property
    def _columns(self) -> dict[int, dict[Var, tuple[Array, Array, Array]]]:
        found: dict[int, dict[Var, tuple[Array, Array, Array]]] = {}
        for name, boxes in self.tables.items():
            for place, dim in enumerate(boxes.dims.tolist()):
                found.setdefault(dim, {})[name] = boxes.lo[:, place], boxes.hi[:, place], boxes.grid[:, place]
        return found

    def range(self) -> tuple[Array, Array]:
        """Bounds of what each dimension holds, whatever the values of the variables."""
        lo, hi = np.zeros(self.width), np.zeros(self.width)
        for boxes in self.tables.values():
            lo[boxes.dims] += boxes.lo.min(0)
            hi[boxes.dims] += boxes.hi.max(0)
        return lo, hi

    @property
    def sizes(self) -> Array:
        """The most that the absolute values of all variables add up to in each dimension; rounded up.

        Nothing cancels here, so that the sum in float64 is off by a small factor only.
        """
        found = np.zeros(self.width)
        for boxes in self.tables.values():
            found[boxes.dims] += farthest(boxes.lo, boxes.hi).max(0, initial=0.0)
        return found * (1 + 2.0**-30)

    def sharp(self, matrix: Array) -> NDArray[np.bool_]:
        """The columns of a matrix that read the stream itself."""
        return np.full(matrix.shape[1], True) if self.blur is None else self.blur(matrix).count[0] == 0

    def without(self, dims: Iterable[int]) -> State:
        """The state with exact zeros in some dimensions."""
        gone = np.array(list(dims), dtype=np.int64)
        kept = {name: boxes.at(~np.isin(boxes.dims, gone)) for name, boxes in self.tables.items()}
        return replace(self, tables=kept)

    def plus(self, name: Var, boxes: Boxes) -> State:
        """The state with more boxes of a variable, in dimensions in which it has none yet."""
        old = self.tables.get(name)
        whole = boxes if old is None else old.beside(boxes)
        need(whole.lo.size <= MOST, f"{name} has too many values")
        need(len(np.unique(whole.dims)) == len(whole.dims), "a dimension is written twice")
        return replace(self, tables={**self.tables, name: whole})

    def dying(self, name: Var, gone: NDArray[np.bool_]) -> State:
        """The state with more values of a variable that do not occur."""
        if name == "1" or not gone.any():
            return self
        return replace(self, dead={**self.dead, name: gone | self.dead.get(name, False)})


@dataclass(frozen=True, eq=False)
class Read:
    """What columns of a matrix read of a table: [value, column].

    `lo` and `hi`: the range. `up` and `down`: the most that the positive and the negative products add up to; every
    partial sum in every order is between -down and up. `count`: products that are not 0. `grid`: of all products.
    """

    lo: Array
    hi: Array
    up: Array
    down: Array
    count: Array
    grid: Array

    @property
    def parts(self) -> tuple[Array, ...]:
        """All arrays."""
        return self.lo, self.hi, self.up, self.down, self.count, self.grid

    @property
    def size(self) -> Array:
        """The most that the sizes of the products add up to."""
        return self.up + self.down

    def at(self, rows: Any, columns: Any) -> Read:
        """Some rows and columns."""
        first = not isinstance(rows, slice) and len(rows) < len(self.lo)  # the smaller copy
        return Read(*(part[rows][:, columns] if first else part[:, columns][rows] for part in self.parts))


def read_boxes(boxes: Boxes, matrix: Array) -> Read:
    """What the columns of a matrix read of a table, in the table's dimensions."""
    need(len(boxes.lo) * matrix.shape[1] <= MOST, f"{len(boxes.lo):,} values, read by {matrix.shape[1]:,} columns")
    used = (matrix[boxes.dims] != 0).any(1) & ((boxes.lo != 0) | (boxes.hi != 0)).any(0)
    kept, weights = boxes.at(used), matrix[boxes.dims[used]]
    need(len(boxes.lo) * weights.size <= WORK, "too many products of values and weights")
    some = (kept.lo != 0) | (kept.hi != 0)
    centre, spread = (kept.lo + kept.hi) / 2 @ weights, (kept.hi - kept.lo) / 2 @ np.abs(weights)
    up, down = signed_sums(kept.lo, kept.hi, weights)
    count = some.astype(np.float64) @ (weights != 0).astype(np.float64)
    grid = product_grid(np.where(some, kept.grid, INF), grid_of(weights))
    size = up + down
    point = (spread == 0) & (size <= 2.0**52 * grid)
    slack = np.where(point, 0.0, (count + 3) * 2.0**-52 * size)
    larger = 1 + (count + 3) * 2.0**-52  # up and down are rounded sums too
    up, down = (np.where(point, part, part * larger) for part in (up, down))
    return Read(centre - spread - slack, centre + spread + slack, up, down, count, grid)


def signed_sums(lo: Array, hi: Array, weights: Array) -> tuple[Array, Array]:
    """The most that the positive, and the negative products of numbers between lo and hi with weights add up to."""
    above, below = np.maximum(hi, 0.0), np.maximum(-lo, 0.0)
    plus, minus = np.maximum(weights, 0.0), np.maximum(-weights, 0.0)
    return above @ plus + below @ minus, above @ minus + below @ plus


def product_grid(left: Array, right: Array) -> Array:
    """The smallest grid of the products of left[value, d] and right[d, column]; exact, or if large a lower bound."""
    rows, inner = left.shape
    columns = right.shape[1]
    if rows * inner * columns > CELLS:
        least = np.where(np.isinf(left).all(0), INF, np.where(np.isinf(left), INF, left).min(0, initial=INF))
        return np.broadcast_to(product_grid(least[None], right), (rows, columns)).copy()
    found = np.full((rows, columns), INF)
    for place in range(inner):
        a, b = np.flatnonzero(np.isfinite(left[:, place])), np.flatnonzero(np.isfinite(right[place]))
        cells = np.ix_(a, b)
        found[cells] = np.minimum(found[cells], np.outer(left[a, place], right[place, b]))
    return found


def number_read(lo: Array, hi: Array, count: Array, grid: Array) -> Read:
    """What is read of numbers as they are: `count` is 1, or 0 where there is none."""
    return Read(lo, hi, np.maximum(hi, 0.0), np.maximum(-lo, 0.0), count, grid)


def add_reads(first: Read, second: Read) -> Read:
    """What is read of two tables together."""
    lo, hi, up, down, count = (a + b for a, b in zip(first.parts[:5], second.parts[:5], strict=True))
    return Read(lo, hi, up, down, count, np.minimum(first.grid, second.grid))


def read_state(state: State, matrix: Array, bias: Array) -> dict[Var, Read]:
    """What columns of a matrix, and a bias, read of each variable that they read at all. The bias belongs to "1"."""
    some = {name: boxes for name, boxes in state.tables.items() if matrix[boxes.dims].any()}
    found = {name: _grainy(read_boxes(boxes, matrix), state.grain) for name, boxes in some.items()}
    own = bias_read(bias)
    if state.blur is not None:
        own = add_reads(own, state.blur(matrix))
    found["1"] = add_reads(found["1"], own) if "1" in found else own
    return found


def bias_read(bias: Array) -> Read:
    """What is read of a bias: one row."""
    row = np.asarray(bias, np.float64)[None]
    return number_read(row, row, (row != 0) * 1.0, grid_of(row))


def _grainy(read: Read, grain: float) -> Read:
    """What is read if each number has a relative error."""
    off = grain * read.size
    return Read(read.lo - off, read.hi + off, read.up + off, read.down + off, read.count, read.grid) if grain else read


def varying(reads: Mapping[Var, Read]) -> dict[Var, NDArray[np.bool_]]:
    """For each variable which columns depend on it. A guess: what is left out is covered by its hull."""
    found = {}
    for name, read in reads.items():
        if len(read.lo) > 1:
            near = 1e-6 * np.maximum(1.0, read.size.max(0)) + 4 * (read.hi - read.lo).max(0)
            found[name] = read.hi.max(0) - read.lo.min(0) > near
    return found


def hull(read: Read) -> Read:
    """What is read if the value is not known."""
    lo, grid = (part.min(0, keepdims=True) for part in (read.lo, read.grid))
    hi, up, down, count = (part.max(0, keepdims=True) for part in (read.hi, read.up, read.down, read.count))
    return Read(lo, hi, up, down, count, grid)


def joined(reads: Mapping[Var, Read], env: Env = ANYWHERE, columns: Any = slice(None)) -> Read:
    """What columns read at joint values of some variables, with the hull of the others.

    The ranges of the variables are added in float64: exactly if they are points on a grid, else they are widened.
    """
    by_variable = (
        read.at(env.codes[name], columns) if name in env.codes else hull(read.at(slice(None), columns))
        for name, read in reads.items()
    )
    total = reduce(add_reads, by_variable)
    point = (total.lo == total.hi) & (total.size <= 2.0**52 * total.grid)
    slack = np.where(point, 0.0, len(reads) * 2.0**-52 * total.size)
    widened = (total.lo - slack, total.hi + slack, *total.parts[2:])
    return Read(*(np.broadcast_to(part, (env.rows, total.lo.shape[1])) for part in widened))


def rounded(read: Read, arithmetic: Arithmetic, bias: Any = 0.0, held: Any = None) -> Array:
    """How far a computed sum, of which `bias` is a term, can be from the exact one.

    Nothing, if all products are multiples of a grid that is not tiny and no partial sum needs more than sum_bits bits.
    Otherwise, in any order, each product passes through at most `count` roundings: gamma(count) times the sizes, and
    what may be flushed: 2 count numbers below `tiny`, which later roundings do not double. Storing rounds once more,
    unless the result fits. `held`: the size of what the stream holds, to which the sum is then added: one rounding
    more, and two results are stored. The sum before the bias may be stored, too. So the stored numbers are the result,
    and the result less what is held and less the bias; partial sums are not.
    """
    added = held is not None
    a, size, count = arithmetic, read.size, read.count + added
    reach = np.maximum(read.up, read.down)
    exact = a.sums(reach, read.grid)
    off = np.where(exact, 0.0, a.gamma(count) * size + 4 * count * a.tiny)
    if a.narrow:
        result = farthest(read.lo, read.hi)
        most = np.minimum(reach, result + np.abs(bias) + (held if added else 0.0))
        fits = exact & a.stores(most, read.grid)
        result = result + added * (1 + a.stored_unit) * size
        before = (1 + a.stored_unit) * (result + np.abs(bias) + off) * (np.asarray(bias) != 0)
        off = off + np.where(fits, 0.0, a.stored_unit * (result + 3 * off + before) + 6 * a.stored_tiny)
    need((size + off).max(initial=0.0) < a.largest, "numbers too large")
    return np.where(read.count == 0, 0.0, off)
