"""The stream after an addition: what heads and their bias add to what each dimension holds.

If one head writes into an empty dimension, the number is what the head gives. Otherwise a sum is exact if all its terms
are points on a grid and few enough. If not: the product with W_O is one sum over the `terms` products of all heads, in
any order, so that each product passes through at most terms + 3 roundings (its own, the sum's, the bias's, the
stream's); the sum, its sum with the bias and the stream are stored. The error is gamma(terms + 3) of the sizes of all
products: `product_error` counts those of a head with several terms, here is the size of the others and of the stream.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import Boxes, State, farthest, grid_of, natural
from tracr_check.variables import Array, Var
from tracr_check.verdict import need

__all__ = ["Added", "added_to", "product_error"]

Ints = NDArray[np.int64]
Range = tuple[Array, Array]
Column = tuple[Array, Array, Array]
"""lo, hi and grid of a dimension, by the value of a variable."""


@dataclass(frozen=True, eq=False)
class Added:
    """What a head adds to a dimension, by the value of a variable, and the values that do not occur."""

    dim: int
    owner: Var
    lo: Array
    hi: Array
    gone: NDArray[np.bool_]


def product_error(terms: int, a: Arithmetic) -> float:
    """The error of the product with W_O, relative to the sizes of a head's products.

    A product of any head may be added before or after those of this one.
    """
    return float(a.gamma(terms + 3)) + a.storing


def added_to(state: State, added: Sequence[Added], bias: Array, terms: Ints, a: Arithmetic, base: Var) -> State:
    """The stream with what heads and the bias add; the error of the sum, and the bias, belong to `base`."""
    dims = sorted({one.dim for one in added} | set(np.flatnonzero(bias).tolist()))
    new = state.without(dims)
    columns: dict[Var, list[tuple[int, Column]]] = {}
    for dim in dims:
        mine = [one for one in added if one.dim == dim]
        for owner, column in _column(state, mine, float(bias[dim]), dim, int(terms[dim]), a, base).items():
            columns.setdefault(owner, []).append((dim, column))
    for owner, found in columns.items():
        rows = len(state.tables[owner].lo) if owner in state.tables else max(len(column[0]) for _, column in found)
        lo, hi, grid = (
            np.stack([np.broadcast_to(part, rows) for part in parts], axis=1)
            for parts in zip(*(column for _, column in found), strict=True)
        )
        new = new.plus(owner, Boxes(np.array([dim for dim, _ in found]), lo, hi, grid))
    for one in added:
        new = new.dying(one.owner, one.gone)
    return new


def _column(
    state: State, added: Sequence[Added], bias: float, dim: int, count: int, a: Arithmetic, base: Var
) -> dict[Var, Column]:
    """What a dimension holds after some additions, by variable; the heads' sum has `count` products."""
    terms = {name: [(lo, hi)] for name, (lo, hi, _) in state.column(dim).items() if lo.any() or hi.any()}
    if len(added) == 1 and not terms and not bias:
        one = added[0]
        return {one.owner: (one.lo, one.hi, natural(one.lo, one.hi, a.stored_bits))}
    for one in added:
        terms.setdefault(one.owner, []).append((one.lo, one.hi))
    terms.setdefault(base, []).append((np.array([bias]), np.array([bias])))
    off = _sum_error([pair for pairs in terms.values() for pair in pairs], count, 2 + (bias != 0), a)
    found = {}
    for name, pairs in terms.items():
        lo, hi = (np.asarray(sum(ends)) for ends in zip(*pairs, strict=True))
        lo, hi = (lo - off, hi + off) if name == base else (lo, hi)
        stored = len(terms) == 1  # the dimension is a stored number
        found[name] = lo, hi, natural(lo, hi, a.stored_bits) if stored else np.where(lo == hi, grid_of(lo), 0.0)
    return found


def _sum_error(terms: Sequence[Range], count: int, stores: int, a: Arithmetic) -> float:
    """How far the computed sum of some terms, and of the `count` products in them, can be off.

    No partial sum may overflow, not even one that other terms cancel.
    """
    size = sum(float(farthest(lo, hi).max()) for lo, hi in terms)
    need(size < a.largest, "numbers too large")
    if all((lo == hi).all() for lo, hi in terms):
        grid = min(float(grid_of(lo).min()) for lo, _ in terms)
        if a.stores(size, grid):
            return 0.0
    roundings = count + len(terms) + 3
    stored = math.expm1(stores * a.stored_unit) * size + (stores + 1) * a.stored_tiny if a.narrow else 0.0
    return float(a.gamma(roundings) * size + stored + roundings * (2.0**-50 * size + 4 * a.tiny))
