"""The set of means a head can produce, by exact rational arithmetic over (sum, count)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracr.rasp.values import Number

__all__ = ["means_by_count"]

DENSE_BITS = 4_000_000


def means_by_count(
    numbers: Sequence[Number], counts: Sequence[int], limit: int
) -> dict[int, NDArray[np.float64]] | None:
    """For each count k, every mean of k of the numbers (with repetition), correctly rounded; `None` past `limit`.

    The sums of k numbers are found from the sums of k-1. On a common denominator the numbers are integers; sums of
    integers in a small range are bits of one big integer (adding v is a shift by v), otherwise a set.

    >>> means_by_count([0, 1], [1, 3], limit=100)
    {1: array([0., 1.]), 3: array([0.        , 0.33333333, 0.66666667, 1.        ])}
    """
    fractions = [number.as_integer_ratio() for number in numbers]
    scale = math.lcm(*(denominator for _, denominator in fractions))
    integers = sorted({numerator * (scale // denominator) for numerator, denominator in fractions})
    base = integers[0]
    step = math.gcd(*(integer - base for integer in integers)) or 1
    offsets = [(integer - base) // step for integer in integers]
    top = max(counts, default=0)
    sums = _dense_sums(offsets, top) if offsets[-1] * top <= DENSE_BITS else _sparse_sums(offsets, top, limit)
    if sums is None:
        return None
    means: dict[int, NDArray[np.float64]] = {}
    total = 0
    for count in counts:
        means[count] = _divide(sums[count], step, count * base, count * scale)
        total += len(means[count])
        if total > 20 * limit:
            return None
    return means


def _dense_sums(offsets: list[int], top: int) -> list[list[int] | NDArray[np.int64]]:
    if offsets == list(range(len(offsets))):
        return [np.arange(count * offsets[-1] + 1) for count in range(top + 1)]
    bits, sums = 1, [_positions(1)]
    for _ in range(top):
        grown = 0
        for offset in offsets:
            grown |= bits << offset
        bits = grown
        sums.append(_positions(bits))
    return list(sums)


def _positions(bits: int) -> NDArray[np.int64]:
    data = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))


def _sparse_sums(offsets: list[int], top: int, limit: int) -> list[list[int] | NDArray[np.int64]] | None:
    current, sums = {0}, [[0]]
    total = 0
    for _ in range(top):
        if len(current) * len(offsets) > 20 * limit:
            return None
        current = {value + offset for value in current for offset in offsets}
        total += len(current)
        if total > limit:
            return None
        sums.append(sorted(current))
    return list(sums)


def _divide(sums: list[int] | NDArray[np.int64], step: int, shift: int, divisor: int) -> NDArray[np.float64]:
    """(step * sum + shift) / divisor for every sum, correctly rounded."""
    biggest = abs(step) * int(sums[-1]) + abs(shift)
    if biggest < 2**53 and divisor < 2**53:  # both exact in float64, whose division rounds correctly
        return (np.asarray(sums, dtype=np.int64) * step + shift).astype(np.float64) / divisor
    return np.array([(step * int(value) + shift) / divisor for value in sums])
