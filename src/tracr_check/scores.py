"""The scores of a head: bounds for classes of queries and keys, and what softmax makes of them.

Only differences of the scores of one query matter. Let q = c + d (d the error of the query) and let `ref` be any
vector: q . k = c . k + d . (k - ref) + d . ref, and the last term is the same for all keys of the query. So the shifted
score is c . k within |d| . |k - ref|. It is bounded for tokens, BOS and PAD with one `ref` per query class.

The components may fall into groups whose terms are bounded apart. The score is still one sum over all components, so
the rounding of a group depends on the others: on their number, and for exactness on their sizes and grids (`Beside`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, Read, State, chunks, farthest, grid_of, rounded, row_kinds
from tracr_check.variables import Array, Codes

__all__ = [
    "ALONE",
    "CELLS",
    "Beside",
    "Vectors",
    "beside",
    "extremes",
    "hulls",
    "largest_product",
    "pad_scores",
    "scores",
    "stored_vectors",
]

CELLS = 1_000_000  # scores that are computed at a time


@dataclass(frozen=True, eq=False)
class Vectors:
    """Queries, keys or values of classes of positions: a box for each component, and a grid if it is a point."""

    lo: Array
    hi: Array
    grid: Array

    @staticmethod
    def within(lo: Array, hi: Array) -> Vectors:
        """Vectors between bounds."""
        return Vectors(lo, hi, np.where(lo == hi, grid_of(lo), 0.0))

    def at(self, rows: slice) -> Vectors:
        """Some rows."""
        return Vectors(self.lo[rows], self.hi[rows], self.grid[rows])

    def of(self, components: NDArray[np.int64]) -> Vectors:
        """Some components."""
        return Vectors(self.lo[:, components], self.hi[:, components], self.grid[:, components])

    @cached_property
    def middle(self) -> Array:
        """The middles of the boxes."""
        return (self.lo + self.hi) / 2

    @cached_property
    def radius(self) -> Array:
        """How far the boxes reach from their middles, which are rounded."""
        return farthest(self.hi - self.middle, self.lo - self.middle)

    @cached_property
    def size(self) -> Array:
        """The largest absolute values."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    @property
    def some(self) -> Array:
        """1 for components that may not be 0."""
        return (self.size > 0).astype(np.float64)

    @property
    def rough(self) -> Array:
        """1 for components that may not be 0 and have no grid."""
        return np.where(self.grid == 0, self.some, 0.0)


def stored_vectors(read: Read, bias: Array, a: Arithmetic) -> Vectors:
    """Vectors as they are computed; `bias` is a term of what is read."""
    off = rounded(read, a, bias)
    return Vectors.within(read.lo - off, read.hi + off)


def hulls(vectors: Vectors, codes: Sequence[NDArray[np.int64]]) -> tuple[Codes, Codes, Vectors]:
    """Rows with the same codes and nearly the same boxes as one row, with the hull of their boxes.

    The first of each, the new row of each old one, and the boxes. Whatever is proved of the hull holds for each of
    them. Nearly: within a few times the largest error of a component.
    """
    step = 4 * vectors.radius.max(0, initial=0.0)
    near = np.where(step > 0, np.rint(vectors.middle / np.where(step > 0, step, 1.0)), vectors.middle)
    first, kind = row_kinds(np.hstack([near, *(one[:, None].astype(np.float64) for one in codes)]))
    return first, kind, Vectors.within(*extremes(kind, len(first), vectors.lo, vectors.hi))


def extremes(codes: NDArray[np.int64], count: int, lo: Array, hi: Array) -> tuple[Array, Array]:
    """The smallest lo and the largest hi of the rows with each code; infinite and minus infinite without rows."""
    low, high = (np.full((count, *lo.shape[1:]), end) for end in (INF, -INF))
    np.minimum.at(low, codes, lo)
    np.maximum.at(high, codes, hi)
    return low, high


def distances(radius: Array, keys: Array, ref: Array) -> Array:
    """How far the error of a query moves keys apart from the reference: radius . |key - ref|, [query, key].

    Components of keys have few different values v, so this is a product of two matrices: radius |v - ref| for every
    component and value, and which keys hold the value there. Rounded up.
    """
    left, right = [np.zeros((len(radius), 1))], [np.zeros((1, len(keys)))]
    for place in np.flatnonzero(radius.any(0)):
        values, held = np.unique(keys[:, place], return_inverse=True)
        left.append(radius[:, place, None] * np.abs(values[None] - ref[:, place, None]))
        right.append((held.reshape(1, -1) == np.arange(len(values))[:, None]).astype(np.float64))
    found: Array = np.hstack(left) @ np.vstack(right)
    return found * (1 + 2.0**-30)


@dataclass(frozen=True)
class Beside:
    """Other products of a sum: how many are not 0, the most that their sizes add up to, and a grid of these.

    The grid is 0 if the products are not all points on a grid.
    """

    count: float
    size: float
    grid: float


ALONE = Beside(0.0, 0.0, INF)


def beside(groups: Sequence[tuple[Vectors, Vectors]]) -> Beside:
    """The components of some groups of queries and keys."""
    count, size, grid = 0.0, 0.0, INF
    for queries, keys in groups:
        rough = any(one.rough.any() or one.radius.any() for one in (queries, keys))
        count += largest_product(queries.some, keys.some)
        size += largest_product(queries.size, keys.size) * (1 + 2.0**-30)
        grid = min(grid, 0.0 if rough else _least_grid(queries, keys))
    return Beside(count, size, grid)


def largest_product(queries: Array, keys: Array) -> float:
    """The largest product of a query and a key, at least 0."""
    parts = chunks(len(queries), len(keys), CELLS)
    return max((float((queries[rows] @ keys.T).max(initial=0.0)) for rows in parts), default=0.0)


def scores(queries: Vectors, keys: Vectors, ref: Array, a: Arithmetic, others: Beside = ALONE) -> tuple[Array, Array]:
    """Bounds of the shifted scores as computed, [query, key].

    A score is exact if all products that are not 0 are multiples of a grid and their sizes add up to few enough bits.
    """

    middle = queries.middle @ keys.middle.T
    spread = queries.size @ keys.radius.T + distances(queries.radius, keys.middle, ref)
    size = queries.size @ keys.size.T
    count = queries.some @ keys.some.T
    known = queries.rough @ keys.some.T + queries.some @ keys.rough.T == 0
    own_grid = _least_grid(queries, keys)
    grid, reach = min(own_grid, others.grid), size + others.size
    exact = known & (spread == 0) & a.sums(reach, grid)
    off = np.where(exact | (count == 0), 0.0, a.gamma(count + others.count) * size + 4 * count * a.tiny)
    if a.narrow:
        fits = exact & a.stores(reach, grid)
        off = off + np.where(fits | (count == 0), 0.0, a.stored_unit * (size + off) + a.stored_tiny)
    precise = known & (spread == 0) & (size <= 2.0**52 * own_grid)
    off = off + np.where(precise | (count == 0), 0.0, (count + 3) * 2.0**-51 * size)
    return middle - spread - off, middle + spread + off


def _least_grid(queries: Vectors, keys: Vectors) -> float:
    """A grid of all products of components whose grids are known."""
    q_grid, k_grid = (
        np.where((one.size > 0) & (one.grid > 0), one.grid, INF).min(0, initial=INF) for one in (queries, keys)
    )
    both = np.isfinite(q_grid) & np.isfinite(k_grid)
    return float((q_grid[both] * k_grid[both]).min(initial=INF))


def pad_scores(
    queries: Vectors, pad: State, w_key: Array, b_key: Array, keys: Vectors, ref: Array, a: Arithmetic, others: int = 0
) -> Array:
    """The largest shifted score of each query class at any PAD position; `keys` is a box of all PAD keys.

    The score is a sum over these components and `others` more.

    What PAD holds is known dimension by dimension: the score is c . (x W + b) = sum over dimensions d of x_d (W c)_d +
    b . c, and x is a sum over variables; for each variable it is at most the largest over its values of the sum of the
    largest terms of each box. Rounding: x W is a sum of at most `terms` products that are not 0, the score of `rank`
    more; their relative errors multiply sums of sizes, which are bounded dimension by dimension too. What a reader sees
    beyond the stream (`blur`) is off by its range, and has products of its own. Sums over dimensions are computed
    before those over components, but for boxes that are no points. The distance by which errors of a query
    move PAD apart from `ref` is rounded up, as `ref` may be far larger than all keys of PAD.
    """
    rank = w_key.shape[1] + others
    tables = [(boxes, w_key[boxes.dims]) for boxes in pad.tables.values() if w_key[boxes.dims].any()]
    tables = [(boxes.at((weights != 0).any(1)), weights[(weights != 0).any(1)]) for boxes, weights in tables]
    terms = float(sum(((boxes.lo != 0) | (boxes.hi != 0)).sum(1).max() for boxes, _ in tables))
    unseen = None if pad.blur is None else pad.blur(w_key)
    terms += 0.0 if unseen is None else float(unseen.count.max(initial=0.0))
    relative = a.gamma(terms + rank + 2) + pad.grain + 4 * a.storing + (terms + rank + 4) * 2.0**-51
    flushed = 4 * (terms + rank + 4) * a.stored_tiny * (1 + queries.size.sum(1))
    total = queries.middle @ b_key + relative * (queries.size @ np.abs(b_key)) + flushed
    apart = (queries.radius * farthest(keys.lo - ref, keys.hi - ref)).sum(1)
    total = total + apart * (1 + 2.0**-30)
    if unseen is not None:
        total = total + queries.size @ (np.maximum(-unseen.lo, unseen.hi) + relative * unseen.size)[0]
    for boxes, weights in tables:
        rows = row_kinds(np.hstack([boxes.lo, boxes.hi]))[0]
        lo, hi = boxes.lo[rows], boxes.hi[rows]
        wide = (lo != hi).any(0)
        centre, sizes = (lo + hi) / 2 @ weights, farthest(lo, hi) @ np.abs(weights)
        radius, through = (hi - lo)[:, wide] / 2, np.abs(queries.middle @ weights[wide].T)
        best = np.full(len(total), -INF)
        for part in chunks(len(rows), len(total), CELLS):
            top = queries.middle @ centre[part].T + through @ radius[part].T + relative * (queries.size @ sizes[part].T)
            best = np.maximum(best, top.max(1))
        total = total + best
    return np.asarray(total)
