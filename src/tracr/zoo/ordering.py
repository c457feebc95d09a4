"""Ordering: ranks, comparisons, sorting and selecting by rank."""

from __future__ import annotations

from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs import make_sort_composite
from tracr.rasp.programs.conditions import COUNTABLE, NUMBERS, ORDERED
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, everywhere, prefixes, task
from tracr.zoo.pieces import MISSING, before, count, earlier, everything, fetch, same, share, token_at

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length
NUMERALS = (1, 2, 3, 4)


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4, 1),
    tags="ordering ranks",
    says="how many tokens of the input are larger than this one",
    answers=at_each(lambda xs, i: sum(x > xs[i] for x in xs)),
    tokens=ORDERED,
)
def count_larger() -> SOp:
    """One head."""
    return count(tokens, tokens, Comparison.GT).named("count_larger")


@task(
    NUMERALS,
    6,
    shown=(3, 1, 4, 1),
    tags="ordering ranks",
    says="how many tokens so far are smaller than this one",
    answers=prefixes(lambda xs: sum(x < xs[-1] for x in xs)),
    causal=True,
    tokens=ORDERED,
)
def smaller_so_far() -> SOp:
    """One head, which sees only the past."""
    return count(tokens, tokens, Comparison.LT).named("smaller_so_far")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4, 2),
    tags="ordering ranks",
    says="inversions: how many later tokens are smaller than this one",
    answers=at_each(lambda xs, i: sum(x < xs[i] for x in xs[i:])),
    tokens=ORDERED,
)
def smaller_after() -> SOp:
    """A selector with two conditions."""
    smaller = rasp.Select(tokens, tokens, Comparison.LT).named("smaller")
    later = rasp.Select(indices, indices, Comparison.GT).named("later")
    return rasp.SelectorWidth((smaller & later).named("smaller_later")).named("smaller_after")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 3, 1),
    tags="ordering ranks",
    says="dense rank: how many different values are smaller than this token",
    answers=at_each(lambda xs, i: len({x for x in xs if x < xs[i]})),
    tokens=ORDERED,
)
def dense_rank() -> SOp:
    """Counts smaller tokens at their first occurrence."""
    seen = rasp.SelectorWidth((same(tokens) & earlier()).named("same_earlier")).named("seen")
    smaller = rasp.Select(tokens, tokens, Comparison.LT).named("smaller")
    is_first = rasp.Select(seen, 0, Comparison.EQ).named("is_first")
    return rasp.SelectorWidth((smaller & is_first).named("smaller_first")).named("dense_rank")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4, 1),
    tags="ordering sorting",
    says="the tokens in decreasing order",
    answers=lambda xs: sorted(xs, reverse=True),
    tokens=NUMBERS,
)
def sort_descending() -> SOp:
    """The library's sort with negated keys."""
    return make_sort_composite(tokens, (-tokens).named("negated")).named("sort_descending")


@task(
    NUMERALS,
    5,
    shown=(3, 2, 4, 1),
    tags="ordering sorting",
    says="the even tokens first, then the odd ones, each in their order",
    answers=lambda xs: [x for x in xs if x % 2 == 0] + [x for x in xs if x % 2],
    tokens=COUNTABLE,
)
def evens_first() -> SOp:
    """A sort by the remainder."""
    return make_sort_composite(tokens, rasp.Map(lambda x: x % 2, tokens).named("odd")).named("evens_first")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4, 1),
    tags="ordering sorting",
    says="the median of the tokens, the lower one of two, at every position",
    answers=everywhere(lambda xs: sorted(xs)[(len(xs) - 1) // 2]),
    tokens=NUMBERS,
)
def median() -> SOp:
    """The token whose place in the sorted input is the middle."""
    middle = rasp.Map(lambda n: (n - 1) // 2, length).named("middle")
    return fetch(_sorted_place(), middle, tokens, 0).named("median")


def _sorted_place() -> SOp:
    """The place of each token in the sorted input; equal ones in their order."""
    less = rasp.Select(tokens, tokens, Comparison.LT).named("less")
    before_me = (less | (same(tokens) & earlier()).named("same_earlier")).named("before_me")
    return rasp.SelectorWidth(before_me).named("sorted_place")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4, 1),
    tags="ordering sorting",
    says="the place of each token in the sorted input; equal tokens in their order",
    answers=lambda xs: [sorted(range(len(xs)), key=lambda j: (xs[j], j)).index(i) for i in range(len(xs))],
    tokens=ORDERED,
)
def sorted_place() -> SOp:
    """Two heads count smaller tokens and equal earlier ones."""
    return _sorted_place()


@task(
    NUMERALS,
    4,
    shown=(1, 4, 3),
    tags="ordering sorting",
    says="whether the token already is where sorting would put it",
    answers=lambda xs: [x == y for x, y in zip(xs, sorted(xs), strict=True)],
    tokens=NUMBERS,
)
def in_sorted_place() -> SOp:
    """Sorts, and compares."""
    in_order = make_sort_composite(tokens, tokens)
    return rasp.SequenceMap(lambda x, y: x == y, tokens, in_order).named("in_sorted_place")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4, 1),
    tags="ordering extremes",
    says="the first position of the largest token, at every position",
    answers=everywhere(lambda xs: xs.index(max(xs))),
    tokens=ORDERED,
)
def argmax() -> SOp:
    """The position that no token beats: larger ones, or equal ones before it."""
    larger = rasp.Select(tokens, tokens, Comparison.GT).named("larger")
    beats = (larger | (same(tokens) & earlier()).named("same_earlier")).named("beats")
    beaten = rasp.SelectorWidth(beats).named("beaten")
    return rasp.categorical(fetch(beaten, 0, indices, -1)).named("argmax")


@task(
    range(1, 6),
    5,
    shown=(3, 1, 4, 2),
    tags="ordering comparison classic",
    says="greater-than: whether the token is larger than the first token",
    answers=at_each(lambda xs, i: xs[i] > xs[0]),
    causal=True,
    tokens=NUMBERS,
)
def greater_than_first() -> SOp:
    """A head fetches the first token; the MLP compares."""
    return rasp.SequenceMap(lambda x, y: x > y, tokens, token_at(0, 0).named("first")).named("greater_than_first")


@task(
    NUMERALS,
    6,
    shown=(1, 3, 2, 4),
    tags="ordering comparison",
    says="whether the tokens so far never decrease",
    answers=prefixes(lambda xs: xs == sorted(xs)),
    causal=True,
    tokens=NUMBERS,
)
def sorted_so_far() -> SOp:
    """Whether there was a descent."""
    descends = rasp.SequenceMap(lambda x, y: x < y, tokens, before(tokens, 1, 0)).named("descends")
    return (share(everything(), descends) == 0).named("sorted_so_far")


@task(
    NUMERALS,
    6,
    shown=(1, 3, 2, 4),
    tags="ordering comparison",
    says="whether the token is larger than both of its neighbours",
    answers=at_each(lambda xs, i: all(xs[j] < xs[i] for j in (i - 1, i + 1) if 0 <= j < len(xs))),
    tokens=NUMBERS,
)
def is_peak() -> SOp:
    """Two heads fetch the neighbours; a missing one counts as 0."""
    higher = rasp.SequenceMap(max, before(tokens, 1, 0), before(tokens, -1, 0)).named("higher_neighbour")
    return rasp.SequenceMap(lambda x, y: x > y, tokens, higher).named("is_peak")


def _is_record(xs: list[Any]) -> bool:
    return all(x < xs[-1] for x in xs[:-1])


@task(
    NUMERALS,
    6,
    shown=(2, 1, 3, 3),
    tags="ordering comparison",
    says="whether the token is larger than all before it",
    answers=prefixes(_is_record),
    causal=True,
    tokens=ORDERED,
)
def is_record() -> SOp:
    """Only the token itself is at least as large."""
    return (count(tokens, tokens, Comparison.GEQ).named("at_least") == 1).named("is_record")


@task(
    NUMERALS,
    5,
    shown=(2, 1, 3, 3),
    tags="ordering comparison",
    says="how many tokens so far were larger than all before them",
    answers=prefixes(lambda xs: sum(_is_record(xs[: i + 1]) for i in range(len(xs)))),
    causal=True,
    tokens=ORDERED,
)
def count_records() -> SOp:
    """Counts the positions with no token so far that is as large."""
    at_least = count(tokens, tokens, Comparison.GEQ).named("at_least")
    return count(at_least, 1).named("count_records")


def _trend(xs: list[Any], i: int) -> str:
    if i == 0:
        return MISSING
    return "up" if xs[i] > xs[i - 1] else "down" if xs[i] < xs[i - 1] else "same"


@task(
    NUMERALS,
    5,
    shown=(1, 3, 3, 2),
    tags="ordering comparison",
    says="trend: whether the token goes 'up' or 'down' from the one before it or is the 'same'; '-' at the start",
    answers=at_each(_trend),
    causal=True,
    tokens=NUMBERS,
)
def trend() -> SOp:
    """A head fetches the token before; the MLP compares."""
    return rasp.SequenceMap(
        lambda x, last: MISSING if last == MISSING else "up" if x > last else "down" if x < last else "same",
        tokens,
        before(tokens),
    ).named("trend")
