"""Scores of a ranking of edges against the true edges, with exact treatment of ties.

A method gives numbers to edges: larger means more important. Let P be the needed edges and N the inert ones.

- AUROC is the probability that a random needed edge has a larger number than a random inert one; a tie counts 1/2.
- Average precision is Σ (Rᵢ - Rᵢ₋₁) Pᵢ over the different numbers in descending order, where Rᵢ and Pᵢ are recall and
  precision of the edges with at least the i-th number. Edges with the same number enter together.
- Precision at size is the share of needed edges among the |P| edges with the largest numbers. It is the expected value
  if ties are broken at random. An edge without a number is not among them.
- Exact: these |P| edges are P. Ties count against the method: a group of ties that fits only in part fails.

Edges without a number share the lowest rank, below every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EdgeKey", "EdgeScores", "area_under_curve", "average_precision", "precision_at_size", "score_edges"]

EdgeKey = tuple[str, str]
"""An edge without its variable: the writer, and the reader with its input."""

Numbers = NDArray[np.float64]
ANY = -np.finfo(np.float64).max  # below every finite number


@dataclass(frozen=True)
class EdgeScores:
    """The scores of a method's edges against the true ones; `None` where a score is undefined.

    `missed` are needed edges that were not found, `extra` inert edges that were found. Found are the edges of a set, or
    the `size` edges with the largest numbers. If a group of ties fits only in part, its needed edges count as missed
    and its inert edges as extra.
    """

    auroc: float | None
    average_precision: float | None
    precision_at_size: float | None
    exact: bool | None
    missed: tuple[EdgeKey, ...] = field(repr=False)
    extra: tuple[EdgeKey, ...] = field(repr=False)
    size: int
    """The number of needed edges."""
    inert: int
    """The number of inert edges."""


def area_under_curve(needed: Sequence[float] | Numbers, inert: Sequence[float] | Numbers) -> float | None:
    """AUROC of the numbers of needed and inert edges; `None` without edges of one kind.

    >>> area_under_curve([3, 2], [2, 1])
    0.875
    """
    high, low = np.asarray(needed, dtype=np.float64), np.sort(np.asarray(inert, dtype=np.float64))
    if not high.size or not low.size:
        return None
    below, up_to = np.searchsorted(low, high, side="left"), np.searchsorted(low, high, side="right")
    return int(below.sum() + up_to.sum()) / (2 * high.size * low.size)


def average_precision(needed: Sequence[float] | Numbers, inert: Sequence[float] | Numbers) -> float | None:
    """Average precision of the numbers of needed and inert edges; `None` without needed edges.

    >>> average_precision([3, 2], [2, 1])
    0.8333333333333333
    """
    if not len(needed):
        return None
    total, hits, taken = 0.0, 0, 0
    for true, false in _blocks(needed, inert):
        hits, taken = hits + true, taken + true + false
        total += true * hits / taken
    return total / len(needed)


def precision_at_size(needed: Sequence[float] | Numbers, inert: Sequence[float] | Numbers) -> float | None:
    """Expected share of needed edges among the |needed| edges with the largest numbers; `None` without needed edges.

    >>> precision_at_size([3, 2], [2, 1])
    0.75
    """
    left = size = len(needed)
    if not size:
        return None
    hits = 0.0
    for true, false in _blocks(*(np.asarray(numbers)[np.isfinite(numbers)] for numbers in (needed, inert))):
        part = min(1.0, left / (true + false))
        hits, left = hits + part * true, left - (true + false)
        if left <= 0:
            break
    return hits / size


def _blocks(needed: Any, inert: Any) -> list[tuple[int, int]]:
    """How many needed and inert edges have each number, from the largest number down."""
    numbers, place = np.unique(np.concatenate([needed, inert]), return_inverse=True)
    true = np.bincount(place[: len(needed)], minlength=len(numbers))
    false = np.bincount(place[len(needed) :], minlength=len(numbers))
    return list(zip(true[::-1].tolist(), false[::-1].tolist(), strict=True))


def score_edges(
    found: Mapping[EdgeKey, float], needed: Sequence[EdgeKey], inert: Sequence[EdgeKey], *, as_set: bool
) -> EdgeScores:
    """The scores of finite numbers for some edges; with `as_set` all edges that have a number were found."""
    high = np.array([found.get(key, -np.inf) for key in needed], dtype=np.float64)
    low = np.array([found.get(key, -np.inf) for key in inert], dtype=np.float64)
    inside, touched = (ANY, ANY) if as_set else _boundary(high, low)
    missed = tuple(key for key, number in zip(needed, high.tolist(), strict=True) if number < inside)
    extra = tuple(key for key, number in zip(inert, low.tolist(), strict=True) if number >= touched)
    return EdgeScores(
        area_under_curve(high, low),
        average_precision(high, low),
        precision_at_size(high, low),
        not missed and not extra if needed else None,
        missed,
        extra,
        len(needed),
        len(inert),
    )


def _boundary(needed: Numbers, inert: Numbers) -> tuple[float, float]:
    """The lowest number whose ties all fit among the |needed| first edges, and the lowest number that reaches them."""
    inside = touched = np.inf
    left = len(needed)
    numbers, counts = np.unique(np.concatenate([needed, inert]), return_counts=True)
    for number, count in zip(numbers[::-1].tolist(), counts[::-1].tolist(), strict=True):
        if not left or number == -np.inf:
            break
        touched = number
        if count > left:
            break
        inside, left = number, left - count
    return inside, touched
