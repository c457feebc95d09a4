"""Groups equal items of a list and equal rows of a matrix, and finds rows with at most one entry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ascending", "at_most_one", "group_rows", "numbered", "row_keys"]

UNPACKED = 64  # with more boolean columns than this, packing them into bits saves time


def numbered(items: Sequence[Hashable]) -> tuple[list[Any], NDArray[np.int32]]:
    """The different items in order of first occurrence, and for each item its index among them.

    >>> numbers = numbered("abca")
    >>> numbers[0], numbers[1].tolist()
    (['a', 'b', 'c'], [0, 1, 2, 0])
    """
    numbers: defaultdict[Any, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    number_of = np.fromiter(map(numbers.__getitem__, items), dtype=np.int32, count=len(items))
    return list(numbers), number_of


def ascending(numbers: NDArray[Any]) -> NDArray[Any]:
    """The different numbers, ascending: like `np.unique`, without the part of numpy that it would load.

    >>> ascending(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers, axis=None)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def group_rows(matrix: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each group of equal rows, and the group of every row.

    >>> first, group = group_rows(np.array([[1, 2], [0, 0], [1, 2]]))
    >>> first.tolist(), group.tolist()
    ([0, 1], [0, 1, 0])
    """
    rows = row_keys(matrix)
    first = sorted(dict(zip(reversed(rows), reversed(range(len(rows))), strict=True)).values())
    group_of = {rows[place]: group for group, place in enumerate(first)}
    return np.array(first, dtype=np.intp), np.fromiter(map(group_of.__getitem__, rows), np.intp, len(rows))


def row_keys(matrix: NDArray[Any]) -> list[bytes]:
    """A hashable key for each row; equal rows have equal keys.

    >>> len(set(row_keys(np.array([[1, 2], [0, 0], [1, 2]]))))
    2
    """
    if matrix.dtype == bool and matrix.shape[1] > UNPACKED:
        matrix = np.packbits(matrix, axis=1)
    if not matrix.size:  # all rows are equal
        return [b""] * len(matrix)
    row = np.dtype((np.void, matrix.shape[1] * matrix.itemsize))
    keys: list[Any] = np.ascontiguousarray(matrix).view(row).ravel().tolist()
    return keys


def at_most_one(selected: NDArray[np.bool_]) -> tuple[bool, bool]:
    """Whether every row, and whether every column, selects at most one cell.

    >>> at_most_one(np.array([[True, False], [True, False]]))
    (True, False)
    """
    if np.count_nonzero(selected) > max(selected.shape):
        return False, False
    rows, columns = np.divmod(np.flatnonzero(selected), selected.shape[1])
    return bool(np.bincount(rows, minlength=1).max() <= 1), bool(np.bincount(columns, minlength=1).max() <= 1)
