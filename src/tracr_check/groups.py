"""Groups of variables that nothing links: each is enumerated by itself.

**Rule.** Let statements (or terms of a score) each be about some variables of a query and some of a key. If they fall
into groups without a common variable, the statements that hold together at a pair of positions of an input are a
combination of such that hold together in each group. So listing what occurs in each group, and then all combinations,
misses nothing; it may list combinations that do not occur. Two literals over V and over n values cost V^2 + n^2 pairs
instead of (V n)^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tracr_check.program import Program
from tracr_check.variables import Env, Var
from tracr_check.verdict import Rejected

__all__ = ["Group", "Link", "fitting", "grouped"]

FEW_CELLS = 4_000_000  # pairs of classes that need no groups
Link = tuple[frozenset[Var], frozenset[Var]]
"""The variables of queries and of keys that a statement is about."""


@dataclass(frozen=True)
class Group:
    """Variables of queries and of keys, and the places of the statements that are about them."""

    queries: frozenset[Var]
    keys: frozenset[Var]
    links: tuple[int, ...]


def fitting(program: Program, links: Sequence[Link], classes: Callable[[Group], tuple[Env, Env]]) -> list[Group]:
    """All statements in one group if its classes of queries and keys are few; else the smallest groups."""
    queries, keys = (frozenset[Var]().union(*side) for side in zip(*links, strict=True)) if links else ((), ())
    whole, groups = Group(frozenset(queries), frozenset(keys), tuple(range(len(links)))), grouped(program, links)
    if len(groups) == 1:
        return [whole]
    try:
        few = math.prod(one.rows for one in classes(whole)) <= FEW_CELLS
    except Rejected:  # too many joint values
        few = False
    return [whole] if few else groups


def grouped(program: Program, links: Sequence[Link]) -> list[Group]:
    """The smallest groups: statements with a common variable, or with one that is a function of another, are together.

    Statements without variables are in the first group.
    """
    places: dict[Link, list[int]] = {}
    for place, link in enumerate(links):
        places.setdefault(link, []).append(place)
    found: list[Group] = []
    for (queries, keys), own in places.items():
        new, others = Group(queries, keys, tuple(own)), []
        for one in found:
            if _related(program, one.queries, queries) or _related(program, one.keys, keys):
                new = Group(one.queries | new.queries, one.keys | new.keys, (*one.links, *new.links))
            else:
                others.append(one)
        found = [*others, new]
    some = [one for one in found if one.queries or one.keys] or [Group(frozenset(), frozenset(), ())]
    bare = [place for one in found if not (one.queries or one.keys) for place in one.links]
    return [replace(some[0], links=(*some[0].links, *bare)), *some[1:]]


def _related(program: Program, first: frozenset[Var], second: frozenset[Var]) -> bool:
    """Whether some variable is a function of the others."""
    return any(program.derivable(one, have) for some, have in ((first, second), (second, first)) for one in some)
