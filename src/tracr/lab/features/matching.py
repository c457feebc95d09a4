"""One-to-one matching of features and atoms: the assignment with the largest sum (the Hungarian method).

Kuhn (1955); shortest augmenting paths with potentials, as in Jonker and Volgenant (1987). O(rows² columns).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["matched"]


def matched(gain: NDArray[Any]) -> NDArray[np.intp]:
    """For each row a column of its own, or -1 if columns are fewer: the sum of the gains is the largest possible.

    >>> matched(np.array([[0.9, 0.8], [0.8, 0.1]])).tolist()
    [1, 0]
    >>> matched(np.array([[0.2], [0.9]])).tolist()
    [-1, 0]
    """
    gain = np.asarray(gain, dtype=np.float64)
    rows, columns = gain.shape
    if rows > columns:
        found = np.full(rows, -1)
        for column, row in enumerate(matched(gain.T).tolist()):
            found[row] = column
        return found
    return _assigned(-gain) if rows else np.zeros(0, dtype=np.intp)


def _assigned(cost: NDArray[Any]) -> NDArray[np.intp]:
    """The cheapest assignment of each row to a column; there are at least as many columns."""
    rows, columns = cost.shape
    of_row, of_column = np.zeros(rows), np.zeros(columns)
    owner = np.full(columns, -1)
    for start in range(rows):
        shortest, before = np.full(columns, np.inf), np.full(columns, -1)
        open_, row, column, reached = np.ones(columns, dtype=bool), start, -1, 0.0
        visited: list[tuple[int, float]] = []
        while True:
            through = reached + cost[row] - of_row[row] - of_column
            better = open_ & (through < shortest)
            shortest[better], before[better] = through[better], column
            column = int(np.where(open_, shortest, np.inf).argmin())
            reached = float(shortest[column])
            open_[column] = False
            if owner[column] < 0:
                break
            row = int(owner[column])
            visited.append((column, reached))
        of_row[start] += reached
        for place, at in visited:
            of_row[owner[place]] += reached - at
            of_column[place] -= reached - at
        while column >= 0:
            previous = int(before[column])
            owner[column] = start if previous < 0 else owner[previous]
            column = previous
    found = np.full(rows, -1)
    taken = np.flatnonzero(owner >= 0)
    found[owner[taken]] = taken
    return found
