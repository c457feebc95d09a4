"""Brackets: depth, partners, and languages near Dyck's."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, everywhere, prefixes, task
from tracr.zoo.pieces import MISSING, count, everything, fetch, first_where, mean, share, so_far

tokens, indices = rasp.tokens, rasp.indices


def _depth_of(xs: list[Any]) -> int:
    return xs.count("(") - xs.count(")")


def _depths_of(xs: list[Any]) -> list[int]:
    return [_depth_of(xs[: i + 1]) for i in range(len(xs))]


def _depth() -> SOp:
    """Opened minus closed so far, for a causal model."""
    return (count(tokens, "(").named("opened") - count(tokens, ")").named("closed")).named("depth")


@task(
    "()a",
    6,
    shown="(a())",
    tags="brackets",
    says="the number of '(' minus the number of ')' so far",
    answers=_depths_of,
    causal=True,
)
def depth() -> SOp:
    """Two counts."""
    return _depth()


@task(
    "()a",
    6,
    shown="(())a",
    tags="brackets",
    says="whether some position so far was two brackets deep",
    answers=prefixes(lambda xs: max(_depths_of(xs)) >= 2),
    causal=True,
)
def nested_so_far() -> SOp:
    """Looks for a depth of two or more."""
    return (count(_depth(), 2, Comparison.GEQ).named("deep") > 0).named("nested_so_far")


@task(
    "()a",
    6,
    shown="(()))a",
    tags="brackets",
    says="whether there was never a ')' without a '(' to close so far",
    answers=prefixes(lambda xs: min(_depths_of(xs)) >= 0),
    causal=True,
)
def never_negative() -> SOp:
    """The share of negative depths, compared with 0."""
    return (share(everything(), (_depth() < 0).named("negative")) == 0).named("never_negative")


@task(
    "()",
    6,
    shown="()(())",
    tags="brackets",
    says="how many prefixes so far were closed: as many ')' as '('",
    answers=prefixes(lambda xs: _depths_of(xs).count(0)),
    causal=True,
)
def count_groups() -> SOp:
    """Counts the positions of depth 0."""
    return count(_depth(), 0).named("count_groups")


@task(
    "()a",
    5,
    shown="(a())",
    tags="brackets averages numerical",
    says="the mean depth so far",
    answers=prefixes(lambda xs: fmean(_depths_of(xs))),
    causal=True,
)
def mean_depth() -> SOp:
    """The mean of a difference of counts."""
    return mean(everything(), _depth()).named("mean_depth")


@task(
    "()[]",
    6,
    shown="([)]",
    tags="brackets counting",
    says="whether there are as many '(' as ')' and as many '[' as ']', in any order",
    answers=everywhere(lambda xs: xs.count("(") == xs.count(")") and xs.count("[") == xs.count("]")),
)
def equal_counts() -> SOp:
    """Four counts, compared in pairs."""
    counts = {token: count(tokens, token).named(f"count_{token}") for token in "()[]"}
    equal = [
        rasp.SequenceMap(lambda x, y: x == y, counts[pair[0]], counts[pair[1]]).named(f"equal_{pair}")
        for pair in ("()", "[]")
    ]
    return (equal[0] & equal[1]).named("equal_counts")


def _closed_later(xs: list[Any], i: int) -> bool:
    here = _depth_of(xs[: i + 1])
    return xs[i] == "(" and any(_depth_of(xs[: j + 1]) < here for j in range(i + 1, len(xs)))


@task(
    "()",
    6,
    shown="(()()",
    tags="brackets",
    says="whether this is a '(' that is closed later",
    answers=at_each(_closed_later),
)
def is_closed() -> SOp:
    """Looks for a later position that is less deep."""
    here = _depth_both_ways()
    shallower = rasp.Select(here, here, Comparison.LT).named("shallower")
    later = rasp.Select(indices, indices, Comparison.GT).named("later")
    ends = rasp.SelectorWidth((shallower & later).named("shallower_later")).named("ends")
    return rasp.SequenceMap(lambda token, n: token == "(" and n > 0, tokens, ends).named("is_closed")


def _depth_both_ways() -> SOp:
    """Opened minus closed so far, for a model that also looks ahead."""
    opened = rasp.SelectorWidth(rasp.Select(tokens, "(", Comparison.EQ) & so_far()).named("opened")
    closed = rasp.SelectorWidth(rasp.Select(tokens, ")", Comparison.EQ) & so_far()).named("closed")
    return (opened - closed).named("depth")


def _partner_distance(xs: list[Any]) -> list[int]:
    stack: list[int] = []
    found = [0] * len(xs)
    for i, x in enumerate(xs):
        if x == "(":
            stack.append(i)
        elif stack:
            found[i] = i - stack.pop()
    return found


@task(
    "()",
    6,
    shown="(()())",
    tags="brackets distances",
    says="at a ')', the distance to the '(' that it closes; 0 at other positions",
    answers=_partner_distance,
    causal=True,
)
def partner_distance() -> SOp:
    """The brackets between two depths open and close in turn: the partner is the one before, of the same level."""
    level = rasp.SequenceMap(lambda d, token: d if token == "(" else d + 1, _depth(), tokens).named("level")
    place = count(level, level).named("place")
    same_level = rasp.Select(level, level, Comparison.EQ).named("same_level")
    one_before = rasp.Select(place, place, lambda key, query: key == query - 1).named("one_before")
    # Positions as strings: the compiler then copies the one that is selected, and lists no means.
    name = rasp.Map(str, indices).named("name")
    partner = rasp.Aggregate((same_level & one_before).named("before_on_level"), name, default="").named("partner")
    distance = rasp.SequenceMap(lambda i, j: i - int(j) if j else 0, indices, partner).named("distance")
    return rasp.SequenceMap(lambda d, token: d if token == ")" else 0, distance, tokens).named("partner_distance")


def _deepest_letter(xs: list[Any]) -> str:
    letters = [(depth, x) for depth, x in zip(_depths_of(xs), xs, strict=True) if x in "ab"]
    return max(letters, key=lambda one: one[0])[1] if letters else MISSING


@task(
    "()ab",
    5,
    shown="a(b)",
    tags="brackets extremes",
    says="the letter that is deepest inside brackets, the first of several, at every position",
    answers=everywhere(_deepest_letter),
)
def deepest_letter() -> SOp:
    """Ranks letters by their depth, and fetches the first of the deepest."""
    low = -99  # below the depth of every letter
    rank = rasp.SequenceMap(lambda d, x: d if x in "ab" else low, _depth_both_ways(), tokens).named("rank")
    exceeded = count(rank, rank, Comparison.GT).named("exceeded")
    deepest = rasp.SequenceMap(lambda n, x: n == 0 and x in "ab", exceeded, tokens).named("is_deepest")
    return fetch(first_where(deepest), True, tokens).named("deepest_letter")
