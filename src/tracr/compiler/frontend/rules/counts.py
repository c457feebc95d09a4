"""Tables of selectors, their boolean combinations, and how many keys a query can select."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.frontend.rules.facts import SHAPE, TOKENS, Facts, Shape
from tracr.ir.ops import ERROR

__all__ = ["Table", "Widths", "combine", "complement", "masks", "surely_met", "widths", "widths_by_position"]

Table = NDArray[np.int8]
LONGEST_ENUMERATED = 256


@dataclass(frozen=True, eq=False)
class Widths:
    """The possible numbers of selected keys; by (position, length), if both inputs depend only on these."""

    counts: tuple[int, ...]
    by_shape: NDArray[np.int32] | None


def combine(how: Callable[[Table, Table], Table], fst: Table, snd: Table) -> Table:
    """A boolean operation cell by cell; a cell where either predicate raises stays an error."""
    combined = how(fst, snd).astype(np.int8)
    combined[(fst == ERROR) | (snd == ERROR)] = ERROR
    return combined


def complement(table: Table) -> Table:
    """The table of the keys that are not selected; errors stay errors."""
    return np.where(table == ERROR, ERROR, 1 - table).astype(np.int8)


def masks(table: Table, keys: Facts, queries: Facts, shape: Shape, causal: bool) -> list[Table] | None:
    """The selection matrix for each length, if keys and queries depend only on the shape of the input."""
    if not _of_shape(keys, queries, shape) or shape.longest > LONGEST_ENUMERATED:
        return None
    key_codes = np.broadcast_to(keys.joint, shape.lengths.shape)
    query_codes = np.broadcast_to(queries.joint, shape.lengths.shape)
    if min(key_codes.min(initial=0), query_codes.min(initial=0)) < 0:
        return None
    found, start, may_raise = [], 0, table.min(initial=0) < 0
    for length in range(shape.shortest, shape.longest + 1):
        here = slice(start, start + length)
        chosen = table[query_codes[here]][:, key_codes[here]]
        if may_raise and (chosen == ERROR).any():
            return None
        found.append(np.tril(chosen) if causal else chosen)
        start += length
    return found


def _of_shape(keys: Facts, queries: Facts, shape: Shape) -> bool:
    """Whether keys and queries depend only on the shape of the input, and all shapes are listed."""
    return shape.listed and all(facts.tabulated and {SHAPE}.issuperset(facts.leaves) for facts in (keys, queries))


def widths_by_position(table: Table, keys: Facts, queries: Facts, shape: Shape, causal: bool) -> Widths | None:
    """Exact widths at any length, if keys are the positions and queries depend only on the shape of the input.

    A query sees as many keys as the input is long. The number it selects is therefore a cumulative sum over keys.
    """
    if not _of_shape(keys, queries, shape) or table.min(initial=0) < 0:
        return None
    codes = np.broadcast_to(queries.joint, shape.lengths.shape)
    by_position = keys.joint is shape.positions or np.array_equal(keys.joint, shape.positions)
    if not by_position or codes.min(initial=0) < 0:
        return None
    seen = shape.positions if causal else shape.lengths - 1
    by_shape: NDArray[np.int32] = np.cumsum(table, axis=1, dtype=np.int32)[codes, seen]
    return Widths(tuple(sorted(set(by_shape.tolist()))), by_shape)


def _codes(facts: Facts, shape: Shape, shortest: int) -> NDArray[np.integer]:
    """The codes that occur in inputs of at least some length."""
    joint = facts.joint
    if SHAPE in facts.leaves:
        joint = joint[..., shape.lengths >= shortest]
    return np.unique(joint[joint >= 0])


def surely_met(keys: Facts, queries: Facts, sizes: tuple[int, int], shape: Shape) -> NDArray[np.bool_]:
    """Which (query, key) cells are surely reached by some input.

    Tokens are free: any value of a function of tokens meets any other (at another position, if both are such
    functions). Functions of the shape meet if they meet at some length.
    """
    met = np.zeros(sizes, dtype=bool)
    if not (keys.exact and queries.exact):
        return met
    sides = (queries, keys)
    if not all(SHAPE in facts.leaves for facts in sides):
        together = all(TOKENS in facts.leaves for facts in sides)  # both depend on tokens: two positions are needed
        if not together or shape.longest > 1:
            met[np.ix_(*(_codes(facts, shape, 2 if together else 1) for facts in sides))] = True
    elif keys.leaves == queries.leaves == (SHAPE,):
        for length in np.unique(shape.lengths):
            here = shape.lengths == length
            met[np.ix_(np.maximum(queries.joint[here], 0), np.maximum(keys.joint[here], 0))] = True
    return met


def widths(table: Table, keys: Facts, queries: Facts, shape: Shape, causal: bool) -> Widths:
    """How many keys queries can select: exactly, from the shape of the input, or by bounds.

    Lower bound: one if the table is full, if every value selects itself (and keys are the queries), or if the key at
    position 0, which every query sees, is always selected. Upper bound, if keys are distinct: the most key values that
    any query selects.
    """
    if shape.longest <= LONGEST_ENUMERATED:
        by_position = widths_by_position(table, keys, queries, shape, causal)
        if by_position is not None:
            return by_position
    exact = masks(table, keys, queries, shape, causal)
    if exact is not None:
        by_shape = np.concatenate([mask.sum(axis=1, dtype=np.int32) for mask in exact])
        return Widths(tuple(sorted(set(by_shape.tolist()))), by_shape)
    most = shape.longest
    chosen = table == 1
    if not chosen.any():
        return Widths((0,), None)
    if keys.distinct:
        most = min(most, int(chosen.sum(axis=1).max()))
    least = 0
    if chosen.all():
        least = 1 if causal else shape.shortest
    elif keys.canon == queries.canon and chosen.diagonal().all():
        least = 1
    elif keys.exact and SHAPE in keys.leaves and shape.listed:
        first = keys.joint[..., shape.positions == 0].ravel()  # the shape is the last leaf
        least = int(first.min(initial=0) >= 0 and bool(chosen[:, first].all()))
    return Widths(tuple(range(least, most + 1)), None)
