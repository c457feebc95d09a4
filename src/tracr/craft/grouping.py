"""Rows of a matrix that are equal, or have one entry only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["at_most_one", "group_rows"]


def group_rows(matrix: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each group of equal rows, and the group of every row.

    >>> first, group = group_rows(np.array([[1, 2], [0, 0], [1, 2]]))
    >>> first.tolist(), group.tolist()
    ([0, 1], [0, 1, 0])
    """
    if matrix.dtype == bool:
        matrix = np.packbits(matrix, axis=1)
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    group: list[int] = []
    for place, row in enumerate(np.ascontiguousarray(matrix)):
        number = numbers.setdefault(row.tobytes(), len(numbers))
        if number == len(first):
            first.append(place)
        group.append(number)
    return np.array(first, dtype=np.intp), np.array(group, dtype=np.intp)


def at_most_one(selected: NDArray[np.bool_]) -> tuple[bool, bool]:
    """Whether every row, and whether every column, selects at most one cell.

    >>> at_most_one(np.array([[True, False], [True, False]]))
    (True, False)
    """
    if np.count_nonzero(selected) > max(selected.shape):
        return False, False
    rows, columns = np.divmod(np.flatnonzero(selected), selected.shape[1])
    return bool(np.bincount(rows, minlength=1).max() <= 1), bool(np.bincount(columns, minlength=1).max() <= 1)
