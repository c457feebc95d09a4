"""Equal items and equal rows are found, in the order they come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import DTypeLike

from tracr.craft.grouping import group_rows, numbered


@given(rows=st.integers(0, 12), columns=st.integers(0, 9), seed=st.integers(0, 99))
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int32, np.float64])
def test_rows_are_grouped_by_what_they_hold(dtype: DTypeLike, rows: int, columns: int, seed: int) -> None:
    """For every type of entry, for transposed matrices and for empty ones."""
    matrix = np.random.default_rng(seed).integers(0, 2, (columns, rows)).astype(dtype).T
    first, group = group_rows(matrix)
    listed = [tuple(row) for row in matrix.tolist()]
    order = list(dict.fromkeys(listed))
    assert [listed[place] for place in first] == order
    assert first.tolist() == [listed.index(row) for row in order]
    assert [order[number] for number in group] == listed


@given(st.lists(st.integers(-2, 2) | st.sampled_from(["a", None, 0.5, (1, 2)])))
def test_items_are_numbered_as_they_come(items: list[object]) -> None:
    """Equal ones have one number."""
    distinct, numbers = numbered(items)
    assert distinct == list(dict.fromkeys(items))
    assert [distinct[number] for number in numbers] == items
