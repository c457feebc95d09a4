"""Expressions that many programs of the zoo are built from."""

from __future__ import annotations

from typing import Any

from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, Selector, SOp
from tracr.values import Value

__all__ = [
    "MISSING",
    "before",
    "count",
    "count_true",
    "differ",
    "earlier",
    "everything",
    "fetch",
    "first_where",
    "is_one_of",
    "mean",
    "same",
    "share",
    "so_far",
    "token_at",
]

MISSING = "-"  # the answer where there is nothing to give


def same(sop: SOp) -> Selector:
    """The positions with the same value as this one."""
    return rasp.Select(sop, sop, Comparison.EQ).named("same")


def earlier() -> Selector:
    """The positions before this one."""
    return rasp.Select(rasp.indices, rasp.indices, Comparison.LT).named("earlier")


def so_far() -> Selector:
    """The positions up to this one."""
    return rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("so_far")


def everything() -> Selector:
    """All positions; under a causal mask, those up to this one."""
    return rasp.Select(rasp.tokens, rasp.tokens, Comparison.TRUE).named("everything")


def count(keys: SOp, queries: SOp | Value, comparison: Any = Comparison.EQ) -> SOp:
    """The number of positions whose key compares with the query."""
    return rasp.SelectorWidth(rasp.Select(keys, queries, comparison))


def count_true(condition: SOp) -> SOp:
    """The number of positions at which a condition holds."""
    return count(condition, True)


def differ(first: SOp, second: SOp) -> SOp:
    """Whether two values differ."""
    return rasp.SequenceMap(lambda x, y: x != y, first, second).named("differ")


def fetch(keys: SOp, queries: SOp | Value, values: SOp, default: Value = MISSING) -> SOp:
    """The value at the one position whose key equals the query."""
    return rasp.Aggregate(rasp.Select(keys, queries, Comparison.EQ), values, default=default)


def first_where(condition: SOp) -> SOp:
    """Whether a position is the first at which a condition holds, with attention to both sides."""
    holds = rasp.Select(condition, True, Comparison.EQ).named("holds")
    number = rasp.SelectorWidth((holds & so_far()).named("held_so_far")).named("number")
    return rasp.SequenceMap(lambda one, n: one and n == 1, condition, number).named("is_first")


def token_at(position: SOp | Value, default: Value = MISSING) -> SOp:
    """The token at a position."""
    return fetch(rasp.indices, position, rasp.tokens, default)


def before(sop: SOp, distance: int = 1, default: Value = MISSING) -> SOp:
    """The value some positions before; after, if the distance is negative."""
    there = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key + distance == query)
    return rasp.Aggregate(there, sop, default=default).named("before" if distance > 0 else "after")


def mean(selector: Selector, sop: SOp) -> SOp:
    """The mean of numbers over the selected positions; 0 if there are none."""
    return rasp.numerical(rasp.Aggregate(selector, rasp.numerical(sop), default=0))


def share(selector: Selector, condition: SOp) -> SOp:
    """The fraction of the selected positions at which a condition holds; 0 if there are none."""
    return mean(selector, condition).named("share")


def is_one_of(values: str) -> SOp:
    """Whether the token is one of these characters."""
    return rasp.Map(lambda token: token in values, rasp.tokens).named("is_one_of")
