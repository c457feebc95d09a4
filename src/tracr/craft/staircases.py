"""Staircases: functions of a number that are constant around each of its values."""

from __future__ import annotations

import numpy as np

from tracr.craft.formats import Format
from tracr.craft.gates import Others, constant_row, gated, other_rows, sum_error
from tracr.craft.linear import NumberRead
from tracr.craft.mlps import Units, join
from tracr.craft.numerics import Noise, dyadic_grid, power_of_two_above
from tracr.craft.variables import Array

__all__ = ["TooClose", "cell_staircase", "staircase"]


class TooClose(Exception):
    """Two numbers that must be distinguished are closer than the error with which they are stored."""

    def __init__(self, below: float, above: float, error: float) -> None:
        self.below, self.above, self.error = below, above, error
        super().__init__(f"{below!r} and {above!r} are too close for an error of {error:.2g}")


def staircase(read: NumberRead, points: Array, table: Array, others: Others, soft: float = 0.0) -> Units:
    """A function of a number with known values `points` (ascending): constant around each, a ramp in each gap.

    A step at t is relu(s(x-t) + 1/2) - relu(s(x-t) - 1/2): 0 below, 1 above, a ramp of width 1/s between. Neighbours
    with equal rows need no step. With s a power of two between 2/gap and 4/gap the plateaus reach at least gap/4 around
    every point; errors below that do not change the result.

    Exactness. Let x be a multiple of g, all steps have the same slope s <= 1/(2g), every t be a multiple of g, and
    |x - t| + 1/(2s) <= 2**23 g. Then every hidden value is a multiple of s*g and at most 2**23 s*g, and sums of two of
    them need at most 24 bits. Therefore a coordinate with at most two steps (one up by 1, one down) is exact on
    plateaus in float32, in any order of the sum. Otherwise hidden values are rounded, and errors of large ones do not
    cancel: see `sum_error`.

    With `soft` the ramps are wider than the gaps: a step is this much above 0 at the point below it, and below 1 at the
    point above (at the far ends of what `read` may hold there, if that is a range). The function then has a slope
    everywhere near a point with a step beside it, and `noise` leaves this out. For a short format see `cell_staircase`.
    """
    (steps,) = (table[1:] != table[:-1]).any(axis=1).nonzero()
    below, above = points[steps], points[steps + 1]
    gaps = (above - below).tolist()
    for step, gap in enumerate(gaps):
        if 4 * read.noise.error >= gap:
            raise TooClose(float(below[step]), float(above[step]), read.noise.error)
    rises = table[steps + 1] - table[steps]
    middles = (below + above) / 2
    slopes = np.array([power_of_two_above(2 / gap) for gap in gaps])
    grid = read.noise.grid
    exact = False
    if grid and len(steps):
        common = float(slopes.max())
        grid = min(grid, 0.5 / common)
        span = max(read.high - middles.min(), middles.max() - read.low) + 0.5 / common
        if span / grid <= 2**23:
            sizes = np.abs(rises)
            exact = bool(((sizes == 0) | (sizes == 1)).all()) and int(sizes.sum(axis=0).max()) <= 2
            slopes = np.full(len(steps), common)
            middles = np.round(middles / grid) * grid
    noise = Noise()
    largest = read.largest + float(np.abs(points).max(initial=0.0))
    if len(steps) and not exact:
        span = read.high - read.low + float((1 / slopes).max())
        wobble = float(sum_error(2 * np.abs(rises) * slopes[:, None], largest, span).max(initial=0.0))
        noise = Noise(error=wobble, cold=wobble)
    if soft:
        slopes, middles = (1 - 2 * soft) / (above - below + 2 * read.reach), (below + above) / 2
    twice = np.concatenate([slopes, slopes])
    centres = slopes * middles
    bias = np.concatenate([0.5 - centres, -0.5 - centres])
    hidden = gated(read, read.number.then(twice[None, :]), twice * 2 * largest + 2, bias)
    parts = [Units(hidden, np.concatenate([rises, -rises]), noise)] if len(steps) else []
    if len(points) and (table[0].any() or not parts):
        parts.append(constant_row(read, table[0]))
    return join(*parts, *other_rows(read, others))


def cell_staircase(read: NumberRead, points: Array, table: Array, others: Others, to: Format) -> Units:
    """A staircase for a short format: every ramp is one cell of the grid g of the number x, from m g to (m + 1) g.

    A step is relu(x/g - m) - relu(x/g - m - 1). Before it was rounded to the grid, x was within e of its point, and
    rounding is monotonic: if the point below a step is at most m g - e, x is at most m g, and the step is 0; if the
    point above is at least (m + 1) g + e, the step is 1. The same holds without rounding to the grid, in float32.

    Exactness. All hidden values are integers. With p bits and |x|, |x - m g| at most 2**p g, none is rounded, in any
    order and with the bias added before or after rounding. The products with the rows of the table are added up in
    float32. If all products are multiples of h and their sizes add up to at most 2**24 h, the sum is exact too.

    In float32 x has 24 bits. If it is not exact (e > 0), only coordinates with at most two steps, one up by 1 and one
    down, are exact there, as in `staircase`; other tables are refused.
    """
    (steps,) = (table[1:] != table[:-1]).any(axis=1).nonzero()
    unit, places = _cells(read, points[steps], points[steps + 1], to)
    rises = table[steps + 1] - table[steps]
    furthest = max(read.largest / unit, float(np.abs(places).max(initial=0.0)) + 1)
    span = max([furthest, *(read.high / unit - places), *(places + 1 - read.low / unit)])
    if len(steps) and (span > to.steps or not _adds_up(rises, span, to, exact=read.noise.error == 0.0)):
        raise TooClose(float(points[steps[0]]), float(points[steps[0] + 1]), unit * max(1.0, span / to.steps))
    scale = np.full(2 * len(steps), 1 / unit)
    bias = np.concatenate([-places, -places - 1])
    ceiling = np.full(2 * len(steps), power_of_two_above(2 * furthest + 2))
    hidden = gated(read, read.number.then(scale[None, :]), ceiling, bias)
    parts = [Units(hidden, np.concatenate([rises, -rises]), Noise())] if len(steps) else []
    if len(points) and (table[0].any() or not parts):
        parts.append(constant_row(read, table[0], to))
    return join(*parts, *other_rows(read, others))


def _cells(read: NumberRead, below: Array, above: Array, to: Format) -> tuple[float, Array]:
    """The width of a cell, and for each step the number m of a cell between the points below and above it."""
    grid, error = read.noise.grid, read.noise.error
    if len(below) and not grid:
        raise TooClose(float(below[0]), float(above[0]), max(error, to.roundoff * read.largest))
    unit = grid or 1.0
    first, last = np.ceil((below + error) / unit), np.floor((above - error) / unit)
    for step in np.flatnonzero(first + 1 > last).tolist()[:1]:
        raise TooClose(float(below[step]), float(above[step]), error + grid)
    return unit, np.floor((first + last) / 2)


def _adds_up(rises: Array, span: float, to: Format, *, exact: bool) -> bool:
    """Whether float32 adds up hidden values, integers up to `span`, times rises that the format holds.

    If the number is not exact in float32, a coordinate may have two steps of 1.
    """
    sizes = np.abs(rises)
    most = float(sizes.sum(axis=0).max(initial=0.0))
    if not exact and (most > 2 or not np.isin(sizes, (0.0, 1.0)).all()):
        return False
    quantum = dyadic_grid(rises.ravel().tolist()) or 2.0**-40
    return to.holds(rises) and 2 * span * most <= 2**24 * quantum
