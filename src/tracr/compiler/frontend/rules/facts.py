"""Facts about an s-op beyond its domain: which values occur together, and which positions differ.

Domains alone treat s-ops as independent: sets become huge, and tables have cells that no input reaches. Three facts
help:

- An elementwise s-op is a function of its *leaves*: the tokens, the shape of the input (position and length), and
  s-ops computed by attention. `joint` tabulates that function if the table is small. It shows that `length - indices`
  is positive, and lets `f(x, g(x))` be tabulated only on the pairs that occur.
- Aggregates over one selector have the same number of selected keys: `groups` lists the codes for each count. If
  position and length determine that number, functions of position and length are combined with it: `(indices + 1) *
  mean` over all positions so far is a sum.
- `distinct`: no two positions of an input hold the same value. `determines`: if two positions of an input agree on this
  s-op, they agree on those leaves and s-ops too. An injective map separates positions exactly as its input does; this
  input is its `root`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.craft.grouping import ascending
from tracr.ir.domains import Codes
from tracr.ir.ops import ERROR, UNREACHED

__all__ = [
    "SHAPE",
    "TOKENS",
    "Facts",
    "Groups",
    "Pairs",
    "Shape",
    "align",
    "at_codes",
    "distinct_codes",
    "feasible_pairs",
    "groups_of",
    "strict_order",
]

TOKENS, SHAPE = -2, -1  # leaf numbers; other leaves are node ids
JOINT_CELLS = 1_100_000
MOST_LEAVES = 32  # axes of an array in every version of numpy
GROUP_CELLS = 4_000_000
MARKED = 64  # numbers are marked, not sorted, if at most so many times as many are possible

Pairs = tuple[Codes, Codes]


@dataclass(frozen=True, eq=False)
class Shape:
    """All (position, length) combinations of the inputs that a program accepts; an empty list if they are too many."""

    shortest: int
    longest: int
    positions: Codes
    lengths: Codes

    @property
    def listed(self) -> bool:
        """Whether the combinations are listed."""
        return len(self.positions) > 0

    @staticmethod
    def of(shortest: int, longest: int) -> Shape:
        """Every position of every length between the two."""
        spans = range(shortest, longest + 1)
        if (shortest + longest) * len(spans) // 2 > JOINT_CELLS:
            nothing = np.zeros(0, dtype=np.int32)
            return Shape(shortest, longest, nothing, nothing)
        lengths = np.repeat(np.arange(shortest, longest + 1, dtype=np.int32), spans)
        starts = np.repeat(np.cumsum([0, *spans[:-1]], dtype=np.int32), spans)
        return Shape(shortest, longest, np.arange(len(lengths), dtype=np.int32) - starts, lengths)


@dataclass(frozen=True, eq=False)
class Groups:
    """The codes that can occur for each number of selected keys.

    `by_shape` is that number for each (position, length), if these determine it.
    """

    selector: int
    by_count: dict[int, Codes]
    by_shape: Codes | None = None


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts about an s-op: see the module's docstring. Slow ones are computed at first use.

    This never recurses deeply, because the facts they depend on are computed before.
    """

    canon: int
    root: int
    leaves: tuple[int, ...]
    find_joint: Callable[[], Codes] | None
    find_groups: Callable[[], Groups | None]
    surely_distinct: bool
    determines: frozenset[int]
    shape: Shape

    @property
    def tabulated(self) -> bool:
        """Whether there is a joint table."""
        return self.find_joint is not None

    @cached_property
    def joint(self) -> Codes:
        """One axis for each leaf, in the order of `leaves`."""
        assert self.find_joint is not None
        return self.find_joint()

    @cached_property
    def groups(self) -> Groups | None:
        """The codes by the number of selected keys."""
        return self.find_groups()

    @cached_property
    def distinct(self) -> bool:
        """Whether no two positions of an input hold the same value."""
        return self.surely_distinct or self._differs_at_positions()

    def _differs_at_positions(self) -> bool:
        """Whether the s-op is a function of tokens and shape that differs at any two positions of any input."""
        if SHAPE not in self.leaves or not self.exact:
            return False
        joint, shape = self.joint, self.shape
        if joint.max(initial=0) + 1 < shape.longest or joint.min(initial=0) < 0:  # too few values, or errors
            return False
        places = np.broadcast_to(shape.positions, joint.shape).ravel().astype(np.int64)
        held = (np.broadcast_to(shape.lengths, joint.shape).ravel().astype(np.int64) << 32) + joint.ravel()
        pairs = held * (int(shape.positions.max(initial=0)) + 1) + places
        return held.size < 2**18 and len(ascending(pairs)) == len(ascending(held))

    @property
    def exact(self) -> bool:
        """Whether every tabulated combination occurs in some input: true for tokens and shape, which are free."""
        return self.tabulated and {TOKENS, SHAPE}.issuperset(self.leaves)

    def occurring(self, size: int) -> Codes:
        """The codes, of a domain of this size, that can occur."""
        if not self.tabulated:
            return np.arange(size, dtype=np.int32)
        return distinct_codes(self.joint, size)

    def fixes(self, other: Facts) -> bool:
        """Whether positions that agree on this s-op agree on `other`."""
        if self.distinct or other.root in self.determines:
            return True
        return other.tabulated and self.determines.issuperset(other.leaves)


def distinct_codes(codes: Codes, size: int) -> Codes:
    """The distinct codes of a domain of this size, in order, without ERROR and UNREACHED.

    >>> distinct_codes(np.array([[3, 1], [-2, 3]]), 5).tolist()
    [1, 3]
    """
    return _distinct(codes, size).astype(np.int32)


def _distinct(numbers: NDArray[np.integer], size: int) -> NDArray[np.integer]:
    """The distinct numbers below `size`, in order: found by marking, or by sorting if they are few."""
    if size > MARKED * (numbers.size + 64):
        found = np.unique(numbers)
        return found[found >= 0]
    seen = np.zeros(size - UNREACHED, dtype=bool)
    seen[numbers.astype(np.intp, copy=False)] = True  # negative numbers index from the end
    return seen[:size].nonzero()[0]


def at_codes(table: Codes, *codes: Codes) -> Codes:
    """The cells of a table for codes (broadcast against each other); ERROR where one of them is not a value."""
    place = codes[0].astype(np.intp)
    for size, axis in zip(table.shape[1:], codes[1:], strict=True):
        place = place * size + axis
    found = table.ravel().take(place, mode="clip")
    for axis in codes:
        if axis.min(initial=0) < 0:
            found = np.where(axis < 0, np.int32(ERROR), found)
    return found


def groups_of(table: Codes, size: int, *known: Groups | None) -> Groups | None:
    """Groups of a tabulated function with `size` values: those of its inputs, mapped through the table."""
    selectors = {groups.selector for groups in known if groups is not None}
    if len(selectors) != 1:
        return None
    (selector,) = selectors
    counts = [set(groups.by_count) for groups in known if groups is not None]
    by_count, cells = {}, 0
    for count in sorted(set.intersection(*counts)):
        part = table
        for axis, groups in enumerate(known):
            part = part if groups is None else part.take(groups.by_count[count], axis)
        cells += part.size
        if cells > GROUP_CELLS:
            return None
        by_count[count] = distinct_codes(part, size)
    shapes = [groups.by_shape for groups in known if groups is not None and groups.by_shape is not None]
    return Groups(selector, by_count, shapes[0] if shapes else None)


def align(fst: Facts, snd: Facts) -> tuple[tuple[int, ...], Codes, Codes] | None:
    """Both s-ops as functions of their common leaves (broadcast against each other), if that table is small."""
    if not (fst.tabulated and snd.tabulated):
        return None
    leaves = tuple(sorted({*fst.leaves, *snd.leaves}))
    if len(leaves) > MOST_LEAVES:
        return None
    first, second = _spread(fst, leaves), _spread(snd, leaves)
    cells = 1
    for a, b in zip(first.shape, second.shape, strict=True):
        cells *= max(a, b)
    return (leaves, first, second) if cells <= JOINT_CELLS else None


def _spread(facts: Facts, leaves: tuple[int, ...]) -> Codes:
    shape = [1] * len(leaves)
    for leaf, size in zip(facts.leaves, facts.joint.shape, strict=True):
        shape[leaves.index(leaf)] = size
    return facts.joint.reshape(shape)


def feasible_pairs(fst: Facts, snd: Facts, sizes: tuple[int, int]) -> Pairs | None:
    """A superset of the pairs of codes that occur at one position; `None` if nothing is known about pairs."""
    if fst.canon == snd.canon:
        codes = fst.occurring(sizes[0])
        return codes, codes
    best: Pairs | None = None
    if set(fst.leaves) & set(snd.leaves):
        aligned = align(fst, snd)
        if aligned is not None:
            best = _unique_pairs([aligned[1:]], sizes)
    if fst.groups is not None and snd.groups is not None and fst.groups.selector == snd.groups.selector:
        shared = _group_pairs(fst.groups, snd.groups, sizes)
        if shared is not None and (best is None or len(shared[0]) < len(best[0])):
            best = shared
    by_shape = _shape_pairs(fst, snd, sizes)
    if by_shape is not None and (best is None or len(by_shape[0]) < len(best[0])):
        best = by_shape
    return best


def _group_pairs(fst: Groups, snd: Groups, sizes: tuple[int, int]) -> Pairs | None:
    counts = [count for count in fst.by_count if count in snd.by_count]
    if sum(len(fst.by_count[count]) * len(snd.by_count[count]) for count in counts) > GROUP_CELLS:
        return None
    return _unique_pairs([(fst.by_count[count][:, None], snd.by_count[count]) for count in counts], sizes)


def _shape_pairs(fst: Facts, snd: Facts, sizes: tuple[int, int]) -> Pairs | None:
    """The pairs, if one s-op is a function of the shape and the other depends on a count that is one too."""
    for shaped, counted in ((fst, snd), (snd, fst)):
        groups = counted.groups
        if shaped.leaves != (SHAPE,) or not shaped.tabulated or groups is None or groups.by_shape is None:
            continue
        together = sorted(set(zip(shaped.joint.tolist(), groups.by_shape.tolist(), strict=True)))
        known = [(code, groups.by_count[count]) for code, count in together if code >= 0 and count in groups.by_count]
        if sum(len(codes) for _, codes in known) > GROUP_CELLS:
            return None
        parts = [(np.array([code]), codes) for code, codes in known]
        return _unique_pairs([part if shaped is fst else part[::-1] for part in parts], sizes)
    return None


def _unique_pairs(parts: list[Pairs], sizes: tuple[int, int]) -> Pairs:
    """The pairs of codes in any of the parts, two arrays that are broadcast against each other."""
    rows, columns = (size - UNREACHED for size in sizes)  # negative codes are numbered too, and dropped later
    keys = [np.multiply(first, columns, dtype=np.intp) + second for first, second in parts]
    for key in keys:
        key -= UNREACHED * columns + UNREACHED
    every = keys[0] if len(keys) == 1 else np.concatenate([np.zeros(0, dtype=np.intp), *(key.ravel() for key in keys)])
    found = _distinct(every, rows * columns)
    first, second = found // columns + UNREACHED, found % columns + UNREACHED
    valid = (first >= 0) & (second >= 0)
    return first[valid].astype(np.int32), second[valid].astype(np.int32)


def strict_order(table: NDArray[np.int8]) -> bool:
    """Whether a selector's table over one set of values is a total order (irreflexive or reflexive everywhere).

    Off the diagonal exactly one of (a, b) and (b, a) is selected: a tournament. A tournament is transitive exactly if
    its out-degrees are all different.
    """
    size = len(table)
    if table.shape != (size, size) or size < 2 or table.min() < 0:
        return False
    diagonal = table.diagonal()
    if not (diagonal == diagonal[0]).all() or 2 * np.count_nonzero(table) != size * (size - 1 + 2 * int(diagonal[0])):
        return False
    either = table + table.T
    np.fill_diagonal(either, 1)
    return bool((either == 1).all()) and len(set(table.sum(axis=1, dtype=np.int64).tolist())) == size
