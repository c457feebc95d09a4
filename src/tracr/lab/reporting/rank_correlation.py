"""Spearman's rank correlation with an interval: cases are drawn again, and within each case its seeds.

All circuits of one case and seed are drawn together, because they share the pairs and the truth. The correlation is
computed anew for each draw: a circuit that is drawn three times counts three times, and ranks are those of the draw.
Equal values share the mean of their ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.bootstrap import Estimate, drawn_times, interval_of

__all__ = ["rank_correlation", "spearman"]

Array = NDArray[Any]
Point = tuple[float, float]
BLOCK = 2_000_000  # ranks that are held at a time


def spearman(points: Sequence[Point]) -> float | None:
    """Spearman's rank correlation; `None` if it is undefined: fewer than three points, or all values of one kind equal.

    >>> spearman([(1, 10), (2, 20), (3, 40), (4, 30)])
    0.8
    """
    if len(points) < 3:
        return None
    found = float(_correlations(np.asarray(points, dtype=np.float64), np.ones((1, len(points))))[0])
    return None if np.isnan(found) else round(found, 12)


def rank_correlation(
    points: Mapping[tuple[str, int], Sequence[Point]], *, draws: int = 1_000, seed: int = 0
) -> Estimate | None:
    """The rank correlation of all points, with its 95 % interval; `points` has those of each (case, seed).

    `None` if it is undefined; without an interval if there is one case, or if it is undefined in some draws.
    """
    units = sorted(unit for unit, group in points.items() if group)
    flat = np.asarray([point for unit in units for point in points[unit]], dtype=np.float64).reshape(-1, 2)
    value = spearman([(x, y) for x, y in flat.tolist()])
    if value is None:
        return None
    sizes: dict[str, int] = {}
    for case, _ in units:
        sizes[case] = sizes.get(case, 0) + 1
    if len(sizes) == 1:
        return Estimate(value, None, None, 1, len(flat))
    times = np.concatenate(drawn_times(tuple(sizes.values()), draws, seed), axis=1)
    unit_of = np.repeat(np.arange(len(units)), [len(points[unit]) for unit in units])
    step = max(1, BLOCK // len(flat))
    found = np.concatenate([_correlations(flat, times[at : at + step][:, unit_of]) for at in range(0, draws, step)])
    if np.isnan(found).any():
        return Estimate(value, None, None, len(sizes), len(flat))
    return Estimate(value, *interval_of(found), len(sizes), len(flat))


def _correlations(points: Array, times: Array) -> Array:
    """The rank correlation for each row of `times`: how often each point counts; NaN where it is undefined."""
    weights = times.astype(np.float64)
    total = weights.sum(axis=1, keepdims=True)
    ranks = [_ranks(points[:, side], weights) - (total + 1) / 2 for side in (0, 1)]
    products = [(weights * ranks[one] * ranks[other]).sum(axis=1) for one, other in ((0, 1), (0, 0), (1, 1))]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(products[0] / np.sqrt(products[1] * products[2]))


def _ranks(values: Array, weights: Array) -> Array:
    """The mean rank of each point among points that count `weights` times each."""
    _, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    counts = np.add.reduceat(weights[:, order], starts, axis=1)
    return np.asarray((counts.cumsum(axis=1) - counts + (counts + 1) / 2)[:, place])
