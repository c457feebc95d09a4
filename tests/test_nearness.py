"""One comparison up to rounding."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tracr.nearness import ROUNDING, apart, margin, nearly_equal, same_value

pytestmark = pytest.mark.repository

NUMBERS = st.floats(-1e12, 1e12) | st.integers(-(10**12), 10**12)
SOURCES = Path(tracr.__file__).parent


@given(NUMBERS, st.floats(-3, 3))
def test_a_number_is_equal_up_to_its_margin(number: float, by: float) -> None:
    """Within the margin, and not outside; arrays as single numbers."""
    other = number + by * margin(number)
    expected = abs(number - other) <= ROUNDING * max(1.0, abs(number))
    assert nearly_equal(number, other) == expected == same_value(number, other)
    assert nearly_equal(np.array([number]), np.array([other])).tolist() == [expected]


@given(st.lists(NUMBERS, min_size=1))
def test_apart_compares_neighbours(numbers: list[float]) -> None:
    """The first number is always a new one."""
    ascending = np.sort(np.array(numbers, dtype=float))
    pairs = zip(ascending[1:], ascending, strict=False)
    assert apart(ascending).tolist() == [True, *(not nearly_equal(above, below) for above, below in pairs)]


def test_integers_beyond_floats_are_compared_exactly() -> None:
    """No OverflowError from a value that a program may have."""
    assert same_value(10**400, 10**400)
    assert not same_value(10**400, 10**400 + 1)
    assert not nearly_equal(10**400, 1, scale=10**400)


def test_nobody_else_compares_up_to_rounding() -> None:
    """`isclose`, `allclose` and a margin written out stand in `nearness.py` only."""
    own = re.compile(r"\b(?:isclose|allclose)\(|\* (?:np\.)?max(?:imum)?\(1(?:\.0)?, (?:np\.)?abs\(")
    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if own.search(path.read_text())}
    assert not found - {"nearness.py"}
