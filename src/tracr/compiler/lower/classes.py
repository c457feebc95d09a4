"""Merges values that a reader treats alike: neighbours with compatible rows become one class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracr.ir.domains import Finite
from tracr.ir.ops import UNREACHED

__all__ = ["Classes", "runs", "separate"]

Classes = NDArray[np.int64]


def separate(domain: Finite) -> Classes:
    """Every value in its own class."""
    return np.arange(len(domain))


def runs(domain: Finite, rows: NDArray[np.integer]) -> tuple[Classes, NDArray[np.integer]]:
    """Classes of neighbouring numbers whose rows agree wherever both are reached, and the row of each class.

    Every value that is not a number, such as `None`, is a class of its own.
    """
    order = domain.ascending[0]
    ascending = rows[order]
    starts = [0] if len(order) else []
    for place, latest in enumerate(_latest_conflicts(ascending)):
        if latest >= starts[-1]:
            starts.append(place)
    first = np.zeros(len(order), dtype=np.int64)
    first[starts[1:]] = 1
    classes = np.zeros(len(rows), dtype=np.int64)
    classes[order] = np.cumsum(first)
    classes[domain.others] = len(starts) + np.arange(len(domain.others))
    merged = np.maximum.reduceat(ascending, starts) if starts else ascending  # UNREACHED is the smallest
    return classes, np.concatenate([merged, rows[domain.others]])


def _latest_conflicts(rows: NDArray[np.integer]) -> list[int]:
    """For each row the last row before it with another value where both are reached, or -1.

    The values of a class agree. In each column it is therefore enough to compare with the last reached row.
    """
    reached = np.where(rows != UNREACHED, np.arange(len(rows), dtype=np.int32)[:, None], -1)
    before = np.full_like(reached, -1)
    np.maximum.accumulate(reached[:-1], axis=0, out=before[1:])
    differ = (reached >= 0) & (np.take_along_axis(rows, before, axis=0) != rows)
    latest: list[int] = np.where(differ, before, -1).max(axis=1, initial=-1).tolist()
    return latest
