"""Which parameters of a test belong to the normal tier, which are slow, and how much the slow tier runs.

The slow tier samples: fewer random programs, and one column of each row of a large grid. With TRACR_LONG=1 it runs all.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tracr.ir.options import LEVELS

LONG = bool(os.environ.get("TRACR_LONG"))


def usual(number: int, *, long: int) -> int:
    """How many random programs, inputs or mutants a slow test takes: the second number with TRACR_LONG."""
    return long if LONG else number


def in_turn(rows: Iterable[Any], columns: Sequence[Any], start: int = 0) -> list[tuple[Any, Any]]:
    """Each row with one of the columns in turn, beginning at `start`; with TRACR_LONG, every row with every column.

    Two tests over one grid take different cells if they start at different columns.

    >>> in_turn("abcd", (0, 1, 2)) if not LONG else [("a", 0), ("b", 1), ("c", 2), ("d", 0)]
    [('a', 0), ('b', 1), ('c', 2), ('d', 0)]
    """
    if LONG:
        return list(itertools.product(rows, columns))
    return [(row, columns[(start + number) % len(columns)]) for number, row in enumerate(rows)]


def slow(values: Iterable[object]) -> list[Any]:
    """These values as parameters, in the slow tier."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def some_levels(number: int) -> Sequence[int]:
    """The levels for one of many random programs: one of them in turn, and all for every eighth program.

    >>> [some_levels(number) for number in (1, 2, 3, 8)]
    [(1,), (2,), (0,), (0, 1, 2)]
    """
    return LEVELS if number % 8 == 0 else (LEVELS[number % len(LEVELS)],)


def mostly_slow(rows: Iterable[object], columns: Sequence[object]) -> list[Any]:
    """Every row with some columns: the normal tier has one of each row, in turn, the slow tier the next one too.

    With TRACR_LONG the slow tier has all the others.
    """
    found = []
    for number, row in enumerate(rows):
        for place, column in enumerate(columns):
            turn = (place - number) % len(columns)
            if turn <= 1 or LONG:
                found.append(pytest.param(row, column, marks=pytest.mark.slow if turn else []))
    return found


def pairwise(first: Iterable[object], second: Sequence[object], third: Sequence[object]) -> list[Any]:
    """Combinations of three lists: one for each pair of the first two, or all of them with TRACR_LONG.

    The normal tier has one combination for each value of the first list. Together they have every pair of the second
    and the third, if the first is long enough.
    """
    found = []
    for number, (row, one) in itertools.product(range(len(second)), enumerate(first)):
        for place, three in enumerate(third):
            taken = place == (row // len(second) + number) % len(third)
            marks: Any = [] if taken and number == row % len(second) else pytest.mark.slow
            if taken or LONG:
                found.append(pytest.param(one, second[number], three, marks=marks))
    return found
