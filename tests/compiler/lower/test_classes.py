"""Neighbouring numbers that a reader treats alike become one class."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracr.compiler.lower.classes import runs
from tracr.ir.domains import finite
from tracr.ir.ops import UNREACHED


@given(
    values=st.lists(st.integers(-9, 9) | st.sampled_from(["a", None]), min_size=1, max_size=12, unique=True),
    width=st.integers(1, 3),
    seed=st.integers(0, 999),
)
def test_runs_are_as_long_as_they_can_be(values: list[object], width: int, seed: int) -> None:
    """Members agree with the row of their class wherever they are reached; the next number does not."""
    domain = finite(values)
    rows = np.random.default_rng(seed).integers(UNREACHED, 2, (len(domain), width))
    classes, merged = runs(domain, rows)
    assert len(merged) == classes.max() + 1
    for code, value in enumerate(domain.values):
        reached = rows[code] != UNREACHED
        assert (merged[classes[code]][reached] == rows[code][reached]).all()
        if not isinstance(value, int):
            assert np.count_nonzero(classes == classes[code]) == 1
    numbers = domain.ascending[0].tolist()
    for place, code in enumerate(numbers[1:], start=1):
        before = [rows[other] for other in numbers[:place] if classes[other] == classes[numbers[place - 1]]]
        clash = any(((row != rows[code]) & (row != UNREACHED) & (rows[code] != UNREACHED)).any() for row in before)
        assert classes[code] == classes[numbers[place - 1]] + clash
