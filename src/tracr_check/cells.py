"""Numbers of an interval as finitely many values.

An s-op may be any number between two ends (a mean with very many values). Its values are then *cells*: a cell's number
is its middle, and the s-op has this value where its number is within the cell's radius. Cells are 1e-5 wide for numbers
up to 1 in size, and relative to the number above; or up to 2e-5 if they would be too many. Rules that use the number of
a value allow for its radius. Such an s-op is only added up, averaged or an output, which is right within 1e-4, relative
above 1; no rule may conclude that two positions hold one number because they hold one cell. Cells overlap, and a number
at the border of two is in both: the value of the s-op is then the cell that one computation finds. So no s-op of an
interval is computed in two ways, which would find different cells and agree nowhere: only a sum is computed, from its
terms, and a copy from parts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tracr_check.verdict import need

__all__ = ["TOLERANCE", "cells"]

FINE, WIDTH = 1e-5, 2e-5
MOST = 400_000
TOLERANCE = 1e-4  # of an output


def cells(low: float, high: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The middles and radii of cells that cover an interval.

    >>> middles, radii = cells(-1.0, 3.0)
    >>> bool(middles[0] - radii[0] <= -1 and middles[-1] + radii[-1] >= 3 and (np.diff(middles) < 2 * radii[1:]).all())
    True
    """
    finite = all(isinstance(end, int | float) and math.isfinite(end) for end in (low, high))
    need(finite and low <= high and max(abs(low), abs(high)) < 1e12, "an interval has no ends")
    first, last = (math.copysign(min(abs(end), 1) + math.log(max(1.0, abs(end))), end) for end in (low, high))
    count = max(1, min(MOST, math.ceil((last - first) / FINE)))
    need(last - first <= count * WIDTH, f"an interval from {low:g} to {high:g} has too many cells")
    steps = np.linspace(first, last, count + 1)
    edges = np.sign(steps) * np.where(np.abs(steps) <= 1, np.abs(steps), np.exp(np.abs(steps) - 1))
    middles = (edges[1:] + edges[:-1]) / 2
    return middles, (edges[1:] - edges[:-1]) / 2 * 1.001 + 1e-9 * np.maximum(1.0, np.abs(middles))
