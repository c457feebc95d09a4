"""Which parameters of a test belong to the normal tier, and which are slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def slow(values: Iterable[object]) -> list[Any]:
    """These values as parameters, in the slow tier."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


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
