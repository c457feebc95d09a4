"""The range of a sum of relus that read one number, over an interval of that number.

F(x) = sum over h of c_h relu(w_h x + b_h) is linear between its kinks -b_h / w_h, so over an interval it is
largest and smallest at the ends or at a kink inside. If no kink is inside, the neurons that are on are the same over
the whole interval and F(x) = A x + B with A = sum of c_h w_h, B = sum of c_h b_h over these. If A = 0, F is B: this is
how a staircase is flat, whatever the error of x.

Everything is computed in float64. A and B are exact if the products have at most 53 bits and the sums at most 52; all
other results are widened by a bound of their rounding error: (neurons + 4) 2^-50 times the sizes of the terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracr_check.boxes import INF, chunks, farthest, grid_of
from tracr_check.variables import Array

__all__ = ["Relus", "bits_of"]

CHUNK = 3_000_000  # values of neurons that are computed at a time


def bits_of(numbers: Array) -> Array:
    """How many bits numbers have.

    >>> bits_of(np.array([0.0, 6.0, 0.75, 1.0])).tolist()
    [0, 2, 2, 1]
    """
    size = np.abs(numbers)
    units = np.where(size == 0, 0.0, size / np.where(size == 0, 1.0, grid_of(size)))
    return np.frexp(units)[1]


@dataclass(frozen=True, eq=False)
class Relus:
    """Neurons that read one number x as w x + b and write c relu(w x + b).

    `rough` bounds the errors of the biases b, which were computed in float64.
    """

    w: Array
    b: Array
    c: Array
    rough: float = 0.0

    def exact(self) -> bool:
        """Whether sums of c w and of c b are computed exactly, in any order."""
        fine = not self.rough
        for other in (self.w, self.b):
            products = self.c * other
            fine &= bool((bits_of(self.c) + bits_of(other) <= 53).all())
            fine &= bool(np.abs(products).sum() <= 2.0**52 * grid_of(products).min(initial=INF))
        return fine

    def range(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Bounds of F over each interval from lo to hi."""
        at_lo, at_hi = (self.w * end[:, None] + self.b for end in (lo, hi))
        far = farthest(lo, hi)
        unsure = 2.0**-48 * (np.abs(self.w) * far[:, None] + np.abs(self.b)) + self.rough
        on = np.minimum(at_lo, at_hi) > unsure
        flat = on | (np.maximum(at_lo, at_hi) < -unsure)
        straight = flat.all(1)
        slope = on.astype(np.float64) @ (self.c * self.w)
        level = on.astype(np.float64) @ (self.c * self.b)
        slack = self.slack(far)
        low = np.minimum(slope * lo, slope * hi) + level - slack
        high = np.maximum(slope * lo, slope * hi) + level + slack
        if self.exact():
            constant = straight & (slope == 0)
            low, high = np.where(constant, level, low), np.where(constant, level, high)
        bent = np.flatnonzero(~straight)
        if len(bent):
            low[bent], high[bent] = self.bent(lo[bent], hi[bent], slack[bent])
        return low, high

    def bent(self, lo: Array, hi: Array, slack: Array) -> tuple[Array, Array]:
        """Bounds over intervals that may contain kinks: the values at the ends and at the kinks inside."""
        steep = self.w != 0
        kinks = np.unique(-self.b[steep] / self.w[steep])
        ends = np.stack([self.value(lo), self.value(hi)])
        low, high = ends.min(0), ends.max(0)
        inside, values = (kinks > lo[:, None]) & (kinks < hi[:, None]), self.value(kinks)
        low = np.minimum(low, np.where(inside, values, INF).min(1, initial=INF))
        high = np.maximum(high, np.where(inside, values, -INF).max(1, initial=-INF))
        # a kink is rounded, and moves F there by no more than its slope times the rounding
        return low - 2 * slack, high + 2 * slack

    def value(self, x: Array) -> Array:
        """F, as computed."""
        parts = [x[rows, None] for rows in chunks(len(x), len(self.w), CHUNK)]
        found = [np.maximum(self.w * part + self.b, 0.0) @ self.c for part in parts]
        return np.concatenate([*found, np.zeros(0)])

    def slack(self, far: Array) -> Array:
        """A bound of the rounding errors of F for |x| <= far."""
        steep, level = (np.abs(self.c) @ np.abs(other) for other in (self.w, self.b))
        relative = (len(self.w) + 4) * 2.0**-50
        return np.asarray(relative * (steep * far + level) + self.rough * np.abs(self.c).sum())
