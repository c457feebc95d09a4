"""Which parameters of a test belong to the normal tier, which are slow, and at which levels many programs run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tracr.ir.options import LEVELS


def slow(values: Iterable[object]) -> list[Any]:
    """These values as parameters, in the slow tier."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def some_levels(number: int) -> Sequence[int]:
    """The levels for one of many random programs: one of them in turn, and all for every eighth program.

    >>> [some_levels(number) for number in (1, 2, 3, 8)]
    [(1,), (2,), (0,), (0, 1, 2)]
    """
    return LEVELS if number % 8 == 0 else (LEVELS[number % len(LEVELS)],)


def pairwise(first: Iterable[object], second: Iterable[object], third: Sequence[object]) -> list[Any]:
    """All combinations, most of them slow: the normal tier has one for each pair of the first two lists.

    It also has every pair of the first and the third list, if the second is not shorter than the third; and every pair
    of the second and the third, if the first is not shorter than the third.
    """
    return [
        pytest.param(one, two, three, marks=[] if place == (row + column) % len(third) else pytest.mark.slow)
        for row, one in enumerate(first)
        for column, two in enumerate(second)
        for place, three in enumerate(third)
    ]
