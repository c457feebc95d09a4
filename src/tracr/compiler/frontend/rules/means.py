"""The set of means a head can produce, by exact rational arithmetic over (sum, count)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tracr.rational import fraction_of
from tracr.values import Number

__all__ = ["means_by_count"]

DENSE_BITS = 4_000_000


def means_by_count(
    numbers: Sequence[Number], counts: Sequence[int], limit: int
) -> dict[int, NDArray[np.float64]] | None:
    """For each count k, every mean of k of the numbers (with repetition), correctly rounded; `None` past `limit`.

    The sums of k numbers are found from the sums of k-1. On a common denominator the numbers are integers; sums of
    integers in a small range are the bits of one big integer (adding v shifts it by v), other sums are a set.

    >>> means_by_count([0, 1], [1, 3], limit=100)
    {1: array([0., 1.]), 3: array([0.        , 0.33333333, 0.66666667, 1.        ])}
    """
    fractions = [fraction_of(number).as_integer_ratio() for number in numbers]
    scale = math.lcm(*(denominator for _, denominator in fractions))
    integers = sorted({numerator * (scale // denominator) for numerator, denominator in fractions})
    base = integers[0]
    step = math.gcd(*(integer - base for integer in integers)) or 1
    offsets = [(integer - base) // step for integer in integers]
    top = max(counts, default=0)
    sums = _dense_sums(offsets) if offsets[-1] * top <= DENSE_BITS else _sparse_sums(offsets, limit)
    means: dict[int, NDArray[np.float64]] = {}
    total, wanted = 0, set(counts)
    for count in range(top + 1):
        found = next(sums, None)
        if found is None:
            return None
        if count in wanted:
            total += len(found)
            if total > 20 * limit:
                return None
            means[count] = _divide(found, step, count * base, count * scale)
    return means


Sums = list[int] | NDArray[np.int64]


def _dense_sums(offsets: list[int]) -> Iterator[Sums]:
    """The sums of 0, 1, 2, ... of the offsets."""
    if offsets == list(range(len(offsets))):
        yield from (np.arange(count * offsets[-1] + 1) for count in itertools.count())
    bits = 1
    while True:
        yield _positions(bits)
        grown = 0
        for offset in offsets:
            grown |= bits << offset
        bits = grown


def _positions(bits: int) -> NDArray[np.int64]:
    data = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))


def _sparse_sums(offsets: list[int], limit: int) -> Iterator[Sums]:
    """The sums of 0, 1, 2, ... of the offsets, until they become too many."""
    current, total = {0}, 0
    while total <= limit:
        yield sorted(current)
        if len(current) * len(offsets) > 20 * limit:
            return
        current = {value + offset for value in current for offset in offsets}
        total += len(current)


def _divide(sums: Sums, step: int, shift: int, divisor: int) -> NDArray[np.float64]:
    """(step * sum + shift) / divisor for every sum, correctly rounded."""
    biggest = abs(step) * int(sums[-1]) + abs(shift)
    if biggest < 2**53 and divisor < 2**53:  # both exact in float64, whose division rounds correctly
        return (np.asarray(sums, dtype=np.int64) * step + shift).astype(np.float64) / divisor
    return np.array([(step * int(value) + shift) / divisor for value in sums])
