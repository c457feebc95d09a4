"""How a selector becomes heads: the constructions for each kind of reader, and the cost model that chooses one.

    one head    for a conjunction: the head averages, or reads BOS's share, as for a single literal
    parts       for copied values: a head for each disjoint conjunction reads the value or nothing; an MLP adds them up
    sums        for counts and means: the heads read sums, which add up; an MLP decodes the count, and for a mean
                another divides by it. A count may also be the number of all keys minus the count of the complement
    product     one head over pairs of keys and pairs of queries (`rules/products.py`)

The cost is the number of directions and neurons plus the d_head of the heads. Each is a row or column of the weights,
and these are d_model long; cost times d_model is about the number of parameters. All heads of a layer have the same
d_head, that of the widest. Parts common to all constructions (the directions of the result, the decoding of a width)
are not counted. The least cost wins; at equal cost the smaller ranks win, then the first in the list above.

A selector that fits into one head is split over several only if the whole model becomes smaller (`search/choices.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.compiler.selectors.conjunctions import Conjunction, SelectorLiteral, cover
from tracr.craft.grouping import group_rows
from tracr.craft.heads import LEGIBLE, SQUARE_RANK
from tracr.ir.selectors import Selector

__all__ = ["EVERYTHING", "Plan", "Reader", "choose_plan"]

Reader = Literal["width", "copy", "mean"]
Heads = tuple[tuple[int, Conjunction], ...]  # each with the sign of its sum in the total
BOS_AND_PAD = 2  # the coordinates of BOS and PAD


@dataclass(frozen=True, eq=False)
class Plan:
    """The heads of a selector for one reader of `width` numbers, and how their results are combined.

    If not `compact`, as at level 0, heads use one-hot codes.
    """

    kind: Literal["one head", "parts", "sums"]
    heads: Heads
    reader: Reader
    longest: int
    width: int
    compact: bool = True

    @cached_property
    def cost(self) -> int:
        """The number of directions and neurons, plus the d_head of the heads."""
        heads, read = len(self.heads), self.width
        if self.kind == "sums" and self.reader == "mean":
            read += 1
        total = heads * max(BOS_AND_PAD + max(self.ranks, default=0), read)
        if self.kind == "one head":
            return total
        directions = heads * read
        if self.kind == "parts":
            return total + directions + 2 * read
        return total + directions + 5 * (self.longest + 1) if self.reader == "mean" else total + directions

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the heads' patterns."""
        return tuple(
            sum(literal.rank if self.compact else literal.one_hot_rank for literal in conjunction.literals)
            for _, conjunction in self.heads
        )

    def __str__(self) -> str:
        if self.kind == "one head":
            return f"one head, cost {self.cost}"
        signs = "" if all(sign > 0 for sign, _ in self.heads) else " with signs"
        return f"{self.kind} of {len(self.heads)} disjoint heads{signs}, cost {self.cost}"


EVERYTHING = Plan("one head", ((1, Conjunction(())),), "width", 0, 1)


def choose_plan(
    selectors: Mapping[int, Selector],
    number: int,
    reader: Reader,
    longest: int,
    width: int,
    *,
    compact: bool = True,
    split: bool = False,
) -> Plan | None:
    """The cheapest plan for a reader of a selector, whose values are `width` numbers; `None` if there is no plan.

    A selector that fits into one head gets one head, unless the reader counts and the selector may be `split`; then
    large comparisons may be split, too. Without `compact`, as at level 0, heads use one-hot codes.
    """
    found = cover(selectors, number)
    if found is None:
        return None
    candidates: list[Heads] = [tuple((1, conjunction) for conjunction in found)]
    several = len(found) != 1 or (split and reader == "width")
    if several and reader == "width":
        candidates.append(_counted_out(selectors, number))
    if several and split:
        splits = [tuple(_split(heads)) for heads in candidates]
        candidates += [heads for heads in splits if heads not in candidates]
    plans = [Plan(_kind(heads, reader), heads, reader, longest, width, compact) for heads in candidates]
    return plans[0] if len(plans) == 1 else min(plans, key=lambda plan: (plan.cost, sum(plan.ranks)))


def _counted_out(selectors: Mapping[int, Selector], number: int) -> Heads:
    """The heads that count all keys, minus the keys of the complement."""
    outside = cover(selectors, number, holds=False)
    assert outside is not None
    return ((1, Conjunction(())), *((-1, conjunction) for conjunction in outside))


def _kind(heads: Heads, reader: Reader) -> Literal["one head", "parts", "sums"]:
    if len(heads) == 1 and heads[0][0] > 0:
        return "one head"
    return "parts" if reader == "copy" else "sums"


def _split(heads: Heads) -> Iterator[tuple[int, Conjunction]]:
    """The same heads, with every order comparison of many values split into matchings."""
    for sign, conjunction in heads:
        parts = [list(_matchings(literal)) for literal in conjunction.literals]
        if parts == [[literal] for literal in conjunction.literals]:
            yield sign, conjunction
        else:
            yield from ((sign, Conjunction(literals)) for literals in _products(parts))


def _products(choices: Sequence[Sequence[SelectorLiteral]]) -> Iterator[tuple[SelectorLiteral, ...]]:
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in _products(choices[1:]):
            yield (first, *rest)


def _matchings(literal: SelectorLiteral) -> Iterator[SelectorLiteral]:
    """An order comparison as disjoint matchings, one for each bit; any other literal as it is.

    Let key classes have ranks r, and let queries select those with r < t. Then r and t agree on all bits above some
    bit, where t has 1 and r has 0. For each bit, queries and keys match if they agree on the bits above it. A
    comparison in one head needs a rank of nearly its number of values. Split, it needs logarithmically many heads of
    rank 3; also for bits that match few classes, because all heads are as wide as the widest.
    """
    ranks = _thresholds(literal.selected)
    if ranks is None:
        yield literal
        return
    queries, keys = ranks
    for bit in range(int(max(queries.max(), keys.max())).bit_length()):
        above = (queries[:, None] >> (bit + 1)) == (keys[None, :] >> (bit + 1))
        matching = above & ((queries >> bit) & 1 == 1)[:, None] & ((keys >> bit) & 1 == 0)[None, :]
        if matching.any():
            yield SelectorLiteral(literal.keys, literal.queries, matching, SQUARE_RANK)


def _thresholds(selected: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """t and r with `selected` = r < t, if the sets of keys that queries select are nested and many."""
    if len(selected) <= LEGIBLE:
        return None
    first, query_class = group_rows(selected)
    if len(first) <= LEGIBLE:
        return None
    sizes = selected[first].sum(axis=1)
    if len(set(sizes.tolist())) < len(sizes):
        return None
    order = np.argsort(sizes, kind="stable")
    chain = selected[first[order]]
    if (chain[:-1] & ~chain[1:]).any():
        return None
    threshold = np.empty(len(first), dtype=np.int64)
    threshold[order] = np.arange(1, len(first) + 1)
    return threshold[query_class], (~chain).sum(axis=0, dtype=np.int64)  # the first set a key is in
