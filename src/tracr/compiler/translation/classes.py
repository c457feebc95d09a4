"""Merging values a reader treats alike: neighbours with compatible rows become one class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Finite
from tracr.compiler.typed import UNREACHED

__all__ = ["Classes", "runs", "separate"]

Classes = NDArray[np.int64]


def separate(domain: Finite) -> Classes:
    """Every value its own class."""
    return np.arange(len(domain))


def runs(domain: Finite, rows: NDArray[np.integer]) -> tuple[Classes, NDArray[np.integer]]:
    """Classes of numbers next to each other whose rows agree wherever both are reached, and the row of each class.

    Every value that is not a number, such as `None`, stays a class of its own.
    """
    order = domain.ascending[0]
    ascending = rows[order]
    starts, merged = np.zeros(len(order), dtype=bool), [*ascending[:1]]
    starts[1:] = _disagree(ascending[:-1], ascending[1:])  # what disagrees with its neighbour does with the class, too
    for place in np.flatnonzero((ascending[1:] != ascending[:-1]).any(axis=1)) + 1:
        row, last = ascending[place], merged[-1]
        starts[place] = starts[place] or _disagree(last, row)
        if starts[place]:
            merged.append(row)
        else:
            merged[-1] = np.where(last == UNREACHED, row, last)
    classes = np.zeros(len(rows), dtype=np.int64)
    classes[order] = np.cumsum(starts)
    classes[domain.others] = len(merged) + np.arange(len(domain.others))
    return classes, np.array([*merged, *rows[domain.others]])


def _disagree(first: NDArray[np.integer], second: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether rows differ where both are reached."""
    return np.asarray(((first != second) & (first != UNREACHED) & (second != UNREACHED)).any(axis=-1))
