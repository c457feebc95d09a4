"""Merging values a reader treats alike: neighbours with compatible rows become one class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Finite
from tracr.compiler.typed import UNREACHED
from tracr.rasp.values import is_number

__all__ = ["Classes", "runs", "separate"]

Classes = NDArray[np.int64]


def separate(domain: Finite) -> Classes:
    """Every value its own class."""
    return np.arange(len(domain))


def runs(domain: Finite, rows: NDArray[np.integer]) -> tuple[Classes, NDArray[np.integer]]:
    """Classes of numbers next to each other whose rows agree wherever both are reached, and the row of each class.

    Every value that is not a number, such as `None`, stays a class of its own.
    """
    classes = np.zeros(len(rows), dtype=np.int64)
    merged: list[NDArray[np.integer]] = []
    for code in domain.ascending[0].tolist():
        row = rows[code]
        if merged:
            last = merged[-1]
            if not ((row != last) & (row != UNREACHED) & (last != UNREACHED)).any():
                merged[-1] = np.where(last == UNREACHED, row, last)
                classes[code] = len(merged) - 1
                continue
        classes[code] = len(merged)
        merged.append(row)
    for code, value in enumerate(domain.values):
        if not is_number(value):
            classes[code] = len(merged)
            merged.append(rows[code])
    return classes, np.array(merged)
