"""Repeated tokens: duplicates, first and last occurrences, distances between them."""

from __future__ import annotations

from typing import Any

from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, everywhere, prefixes, task
from tracr.zoo.pieces import MISSING, count, earlier, fetch, first_where, same

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length


@task(
    "abcd",
    6,
    shown="abacd",
    tags="repeats",
    says="whether the token occurs only once in the input",
    answers=at_each(lambda xs, i: xs.count(xs[i]) == 1),
)
def is_unique() -> SOp:
    """A histogram, compared with 1."""
    return (count(tokens, tokens).named("hist") == 1).named("is_unique")


@task(
    "abc",
    6,
    shown="abaca",
    tags="repeats",
    says="whether the token does not occur again",
    answers=at_each(lambda xs, i: xs[i] not in xs[i + 1 :]),
)
def is_last_occurrence() -> SOp:
    """No equal token at a later position."""
    later = rasp.Select(indices, indices, Comparison.GT).named("later")
    again = rasp.SelectorWidth((same(tokens) & later).named("same_later")).named("again")
    return (again == 0).named("is_last_occurrence")


def _is_first_duplicate(xs: list[Any]) -> bool:
    return xs[-1] in xs[:-1] and len({*xs[:-1]}) == len(xs) - 1


@task(
    "abcd",
    6,
    shown="abcba",
    tags="repeats classic",
    says="whether this is the first position whose token has occurred before",
    answers=prefixes(_is_first_duplicate),
    causal=True,
)
def first_duplicate() -> SOp:
    """Counts the duplicates so far."""
    repeated = (count(tokens, tokens).named("occurrence") > 1).named("repeated")
    so_many = count(repeated, True).named("duplicates_so_far")
    return rasp.SequenceMap(lambda again, n: again and n == 1, repeated, so_many).named("first_duplicate")


@task(
    "abc",
    5,
    shown="abcba",
    tags="repeats",
    says="the token that is the first to be repeated, at every position",
    answers=everywhere(lambda xs: next((x for i, x in enumerate(xs) if x in xs[:i]), MISSING)),
)
def first_repeated_token() -> SOp:
    """Numbers the repeated positions, and fetches the first."""
    seen = rasp.SelectorWidth((same(tokens) & earlier()).named("same_earlier")).named("seen")
    repeated = (seen > 0).named("repeated")
    return fetch(first_where(repeated), True, tokens).named("first_repeated_token")


@task(
    "abc",
    6,
    shown="abaca",
    tags="repeats numerical",
    says="the position of the first occurrence of this token",
    answers=at_each(lambda xs, i: xs.index(xs[i])),
    causal=True,
)
def first_position() -> SOp:
    """Only first occurrences are keys."""
    occurrence = count(tokens, tokens).named("occurrence")
    key = rasp.SequenceMap(lambda token, n: token if n == 1 else "", tokens, occurrence).named("first_time")
    return fetch(key, tokens, indices, -1).named("first_position")


def _distance(xs: list[Any]) -> int:
    return next((d for d in range(1, len(xs)) if xs[-1 - d] == xs[-1]), 0)


@task(
    "abc",
    6,
    shown="abaca",
    tags="repeats numerical",
    says="the distance to the nearest earlier occurrence of this token, 0 if there is none",
    answers=prefixes(_distance),
    causal=True,
)
def repeat_distance() -> SOp:
    """Fetches the position of the occurrence before this one."""
    occurrence = count(tokens, tokens).named("occurrence")
    key = rasp.SequenceMap(lambda token, n: (token, n), tokens, occurrence).named("numbered")
    wanted = rasp.SequenceMap(lambda token, n: (token, n - 1), tokens, occurrence).named("wanted")
    place = fetch(key, wanted, indices, -1).named("place")
    return rasp.SequenceMap(lambda now, then: now - then if then >= 0 else 0, indices, place).named("repeat_distance")
