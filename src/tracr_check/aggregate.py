"""What a head writes into one dimension, as a range for each value of the owner.

With a pattern that is proved (`selection.py`), a query that selects w keys writes, in exact arithmetic,

    (sum of o_k over the selected keys + C b) / (w + C)

o_k is what the dimension reads at key k, b at BOS; C = 0 if BOS does not count (then w > 0), and b alone if w = 0.
The computed result differs by at most

    (e^(rho + gamma(n + 2) + tail + 3 stored) - 1) (sum of |o_k| + C |b|) / (w + C) + leak

rho: `weight_error`. gamma(n + 2): the sum over keys. tail: the product with W_O. stored: rounding of weights and of the
sum, if numbers are stored in fewer bits. leak: the weight of all other keys, times twice the largest number. If one
position has all the weight, its weight is 1 (or within copy_error), and only `tail` is left. `flushed` is added where
numbers may be flushed: weights, if some may be so small; the result of each component, times W_O; and the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr_check.aggregated import default_code, moved_codes
from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF
from tracr_check.scores import extremes
from tracr_check.selection import Selection
from tracr_check.variables import Array, Codes, SOp
from tracr_check.verdict import need

__all__ = ["Reading", "Values", "copied", "counted", "parted", "summed"]

Range = tuple[Array, Array]
Values = tuple[Array, Array, NDArray[np.bool_]]
"""lo and hi for each value of the owner, and the values that do not occur."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What a dimension reads: at keys by row (joint values), at BOS and at PAD; sizes bound the sums of products.

    `gain`: the sizes of the column of W_O, added up. `terms`: the products of the sum over all heads.
    """

    lo: Array
    hi: Array
    size: Array
    bos: tuple[float, float]
    bos_size: float
    pad_size: float
    gain: float
    tail: float
    keys: int
    terms: int
    a: Arithmetic

    @property
    def largest(self) -> float:
        """The largest size of all."""
        return max(float(self.size.max(initial=0.0)), self.bos_size, self.pad_size)

    def alone(self, sizes: Array) -> Array:
        """The errors of values that have all the weight; none of values all of whose products are 0."""
        a = self.a
        lost = (self.gain + 1) * a.stored_tiny + 4 * (self.terms + 2) * a.tiny
        flushed = lost if self.tail or a.copy_error else 0.0
        stored = 2 * a.storing if self.tail else 0.0
        return np.where(sizes > 0, (1.01 * (self.tail + a.copies) + stored) * sizes + flushed, 0.0)

    def shared(self, selection: Selection) -> float:
        """The relative error of a value that is made of several."""
        sums = float(self.a.gamma(self.keys + 2))
        return math.expm1(selection.weight_error(self.keys, self.a) + sums + self.tail + 3 * self.a.storing) + 2.0**-44

    def averaged(self, selection: Selection) -> float:
        """The error of a mean of w selected values, relative to the largest of them.

        If keys that are not selected have no weight (BOS, too), and one component is all that is read (so that there is
        no `tail`), the sum has w products that are not 0, each at most e^rho / w of the largest value. An addition is
        off by u times its result, which is at most this times the number of products below it in the tree; the trees
        with the largest sum of these numbers add one product after the other: 2 + 3 + ... + w < w (w + 1) / 2. So the
        additions together are off by about (w + 1) / 2 u, not w u, with the rounding of the products by (w + 3) / 2 u;
        their own errors make it gamma(w + 3) / 2.
        """
        if self.a.leaks or self.tail:
            return self.shared(selection)
        sums = float(self.a.gamma(self.keys + 4)) / 2
        return math.expm1(selection.weight_error(self.keys, self.a) + sums + 3 * self.a.storing) + 2.0**-44

    def flushed(self, selection: Selection | None) -> float:
        """What a mean of several values loses where numbers are flushed; `None`: nothing is known of the weights."""
        least = 0.0 if selection is None else selection.least_weight(self.keys)
        weights = 0.0 if least >= 2 * self.a.stored_tiny else self.keys * self.largest
        sums = 4 * (self.keys * self.gain + self.terms + 2) * self.a.tiny  # each product, each addition (see `rounded`)
        return (weights + 2 * self.gain + 2) * self.a.stored_tiny + sums

    def copies(self, sizes: Array, selection: Selection, one: bool) -> Array:
        """The errors of copies: one key has all the weight, or several keys with equal values share it."""
        if one:
            return self.alone(sizes)
        relative = self.averaged(selection)  # may be infinite; the largest of equal values is the value
        return np.where(sizes > 0, relative, 0.0) * sizes + self.flushed(selection)

    @property
    def at_bos(self) -> Range:
        """What is written where BOS has all the weight: one range."""
        off = self.alone(np.array([self.bos_size]))
        return self.bos[0] - off, self.bos[1] + off

    @property
    def share(self) -> bool:
        """Whether only BOS has a value, and it is a power of two, as all weights of the product with W_O are."""
        power = self.bos[0] == self.bos[1] and math.frexp(abs(self.bos[0]))[0] == 0.5
        only = not self.size.any() and abs(self.bos[0]) == self.bos_size
        return self.a.narrow and power and only and not self.tail and not self.a.leaks and not self.a.copy_error

    def by_code(self, codes: Codes, size: int) -> tuple[Array, Array, Array]:
        """lo, hi and size by the code of a variable (infinite, minus infinite and 0 where no row has it)."""
        most = extremes(codes, size, self.size, self.size)[1]
        return *extremes(codes, size, self.lo, self.hi), np.maximum(most, 0.0)

    def values(self, low: Array, high: Array) -> Values:
        """Ranges by value, with what keys add that should have no weight.

        Values that do not occur have the range from infinity down to minus infinity; no overflow gives that.
        """
        gone = (low == INF) & (high == -INF)
        leak = 2 * self.a.leak(self.keys) * self.largest
        return np.where(gone, 0.0, low - leak), np.where(gone, 0.0, high + leak), gone


def counted(reading: Reading, selection: Selection, counts: Array, where: str) -> Values:
    """The range for each number w of selected keys.

    (w o + C b) / (w + C) is monotone in o, b and C each, so it is largest and smallest at their ends.
    """
    low, high = np.full(len(counts), INF), np.full(len(counts), -INF)
    if not selection.never:
        need(selection.weight is not None, "BOS has no weight to count against", where)
        low, high = _mixed(reading, selection, counts * reading.lo.min(), counts * reading.hi.max(), counts)
        if reading.share:
            low, high = _stored_share(reading, selection, counts, (low, high))
    b_lo, b_hi = reading.at_bos
    return reading.values(np.where(counts == 0, b_lo, low), np.where(counts == 0, b_hi, high))


def _stored_share(reading: Reading, selection: Selection, counts: Array, known: Range) -> Range:
    """The range for each number w of selected keys, if only BOS has a value, a power of two: its weight, stored once.

    The weight is C / (w + C) within `weight_error`, and stored as the nearest number of the format. Its product with b
    and that with W_O (`gain`, at least 1) only change the exponent, the other products are 0, and so nothing is rounded
    again. `known`: the general rule, for results that may be flushed.
    """
    assert selection.weight is not None
    low, high = (math.exp(end) for end in selection.weight)
    a, b = reading.a, reading.bos[0]
    wide = math.expm1(selection.weight_error(reading.keys, a)) + 2.0**-44
    lo, hi = a.nearest(low / (counts + low) * (1 - wide), high / (counts + high) * (1 + wide))
    ends = np.stack([lo * b, hi * b])
    fine = (lo > 2 * a.stored_tiny) & (np.abs(ends).min(0) > 2 * a.stored_tiny * reading.gain)
    return np.where(fine, ends.min(0), known[0]), np.where(fine, ends.max(0), known[1])


def _mixed(reading: Reading, selection: Selection, sum_lo: Array, sum_hi: Array, counts: Array) -> Range:
    """The range of (S + C b) / (w + C), S between two sums, rounding included."""
    assert selection.weight is not None
    weight = np.array([[math.exp(end)] for end in selection.weight])
    sizes = counts * reading.size.max(initial=0.0) + weight * reading.bos_size
    off = reading.shared(selection) * sizes / (counts + weight) + reading.flushed(selection)
    low, high = (
        (total + weight * b) / (counts + weight) for total, b in zip((sum_lo, sum_hi), reading.bos, strict=True)
    )
    return (low - off).min(0), (high + off).max(0)


@dataclass(frozen=True, eq=False)
class Affine:
    """o = slope x + offset + r with r between r_lo and r_hi, for all values x that are numbers."""

    slope: float
    offset: float
    r_lo: float
    r_hi: float

    @staticmethod
    def of(numbers: Array, low: Array, high: Array) -> Affine:
        """Through the middles at the smallest and the largest number; residuals of the boxes."""
        middle = (low + high) / 2
        first, last = int(np.argmin(numbers)), int(np.argmax(numbers))
        wide = numbers[last] - numbers[first]
        slope = float((middle[last] - middle[first]) / wide) if wide > 0 else 0.0
        offset = float(middle[first] - slope * numbers[first])
        line = slope * numbers + offset
        slack = 2.0**-50 * (np.abs(slope * numbers) + abs(offset))
        return Affine(slope, offset, float((low - line - slack).min()), float((high - line + slack).max()))


def summed(reading: Reading, selection: Selection, x: Array, codes: Codes, sums: Array, where: str) -> Values:
    """The range for each sum S of the numbers x of the selected keys (`codes` are those of the rows).

    o_k = slope x_k + r_k, so the sum of o_k is slope S + w r. For S not 0 at least |S| / max |x| keys are selected.
    The bounds are quotients of two linear functions of w, so monotone in w, and the smallest and the largest w are
    enough. Sums are listed within 1e-9.
    """
    if selection.never:  # all sums are 0
        lo, hi, _ = reading.values(*(np.full(len(sums), end) for end in reading.at_bos))
        return lo, hi, sums != 0
    need(selection.weight is not None, "BOS has no weight to sum against", where)
    low, high, _ = reading.by_code(codes, len(x))
    live = np.isfinite(low)
    need(np.isfinite(x[live]).all() and live.any(), "what is summed is not a number", where)
    fit = Affine.of(x[live], low[live], high[live])
    largest = float(np.abs(x[live]).max())
    fewest = np.ceil(np.abs(sums) / largest - 1e-6) if largest else np.zeros(len(sums))
    near = abs(fit.slope) * 2e-9 * np.maximum(1.0, np.abs(sums))
    ends = []
    for counts in (np.maximum(fewest, 0.0), np.full(len(sums), float(reading.keys))):
        least, most = (fit.slope * sums + counts * (fit.offset + rest) for rest in (fit.r_lo, fit.r_hi))
        ends.append(_mixed(reading, selection, least - near, most + near, counts))
    lows, highs = zip(*ends, strict=True)
    return reading.values(np.minimum(*lows), np.maximum(*highs))


def parted(
    reading: Reading, selection: Selection, codes: Codes, size: int, equal: bool, one: bool, where: str
) -> Values:
    """The range for each copied value of a part of a split copy; the last code: nothing is selected."""
    need(selection.weight is None, "BOS takes part in a copy", where)
    need(one or equal, "several values are selected", where)
    low, high, most = reading.by_code(codes, size)
    off, (b_lo, b_hi) = reading.copies(most, selection, one), reading.at_bos
    return reading.values(np.append(low - off, b_lo), np.append(high + off, b_hi))


def copied(
    reading: Reading, selection: Selection, source: SOp, target: SOp, codes: Codes, equal: bool, one: bool, where: str
) -> Values:
    """The range for each value of an aggregate.

    *Copies* (all selected values are equal, or none of them is a number: the program is undefined if two are selected):
    the value itself, if it is listed. *Means* of numbers: o is affine in the number, so the mean of o is affine in the
    mean, which the program lists within 1e-9. Values that are not numbers are copied alone. *Default*: what BOS holds.
    """
    need(selection.weight is None, "BOS takes part in a mean", where)
    low, high, most = reading.by_code(codes, len(source.values))
    live, numeric = np.isfinite(low), np.isfinite(source.numbers)
    one = one or bool(target.op["assumed"])
    copies, written = live & ~numeric, []
    if not (live & numeric).any() or (source.listed and (one or equal)):
        copies = live
    else:
        used = live & numeric
        fit = Affine.of(source.numbers[used], low[used], high[used])
        written.append(_means(reading, selection, fit, float(most[used].max()), source, target))
    errors = np.where(numeric, reading.copies(most, selection, one), reading.alone(most))[copies]
    written.append((moved_codes(source, target)[copies], low[copies] - errors, high[copies] + errors))
    if not selection.sure:
        b_lo, b_hi = reading.at_bos
        written.append((np.array([default_code(target)]), b_lo, b_hi))
    codes, lo, hi = (np.concatenate(parts) for parts in zip(*written, strict=True))
    need(np.isfinite(lo).all() and np.isfinite(hi).all(), "numbers too large", where)
    fine = codes >= 0  # else the program is undefined there
    return reading.values(*extremes(codes[fine], len(target.values), lo[fine], hi[fine]))


def _means(
    reading: Reading, selection: Selection, fit: Affine, size: float, source: SOp, target: SOp
) -> tuple[Codes, Array, Array]:
    """The range of each mean of numbers; the mean of cells' middles is within the largest radius of the true mean."""
    codes = np.flatnonzero(np.isfinite(target.numbers))
    numbers, radius = target.numbers[codes], target.radius[codes] + float(source.radius.max())
    off = abs(fit.slope) * (1.1e-9 * np.maximum(1.0, np.abs(numbers)) + radius)
    mean = fit.slope * numbers + fit.offset
    rounding = reading.averaged(selection) * size + reading.flushed(selection)
    error = rounding + off + 2.0**-50 * (np.abs(mean) + 2 * abs(fit.offset))
    return codes, mean + fit.r_lo - error, mean + fit.r_hi + error
