"""Rows of a matrix that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["group_rows"]


def group_rows(matrix: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each group of equal rows, and the group of every row.

    >>> first, group = group_rows(np.array([[1, 2], [0, 0], [1, 2]]))
    >>> first.tolist(), group.tolist()
    ([0, 1], [0, 1, 0])
    """
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    group: list[int] = []
    for place, row in enumerate(np.ascontiguousarray(matrix)):
        number = numbers.setdefault(row.tobytes(), len(numbers))
        if number == len(first):
            first.append(place)
        group.append(number)
    return np.array(first, dtype=np.intp), np.array(group, dtype=np.intp)
