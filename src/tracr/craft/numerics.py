"""What float32 does to a compiled model: the logit gap, and how far stored values may be from what they stand for.

Weights are derived in float64 and run in float32, whose unit roundoff is U = 2**-24. Each variable carries a bound on
its error, and a construction is used only where its own bound is good enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "EXACT",
    "GAP",
    "Noise",
    "U",
    "dyadic_grid",
    "leak",
    "low_bits",
    "mean_error",
    "power_of_two_above",
    "share_error",
    "sum_error",
]

U = 2.0**-24

GAP = 256.0
"""Logits are 0 for selected keys and -GAP for the rest (`Options.gap` is another); BOS, the default, sits at half of
it. exp(-104) is already 0 in float32, so both -128 and -256 vanish exactly; powers of two survive any float format."""

CLEAN = 2e-6
"""A one-hot code whose hot coordinate is this close to 1 needs no clean-up."""

OUTPUT_TOLERANCE = 1e-3
"""How far an output number may be off by its error bound, times max(1, |number|). True errors stay far below."""

TOO_ROUGH = 0.2
"""A one-hot code farther off than this cannot be cleaned any more."""

NUMBER_TOLERANCE = 5e-5
"""How far an MLP may put a number off, times max(1, |number|)."""


@dataclass(frozen=True)
class Noise:
    """Bounds on the error of a stored code.

    `error`: of the number, or of the hot coordinate of a one-hot code. `cold`: of its other coordinates. `grid`: if not
    0, what is stored is a multiple of it, so fixed-point arithmetic on it is exact.
    """

    error: float = 0.0
    cold: float = 0.0
    grid: float = 0.0


EXACT = Noise()


def power_of_two_above(number: float) -> float:
    """The smallest power of two that is at least `number`.

    >>> power_of_two_above(800.0), power_of_two_above(0.25)
    (1024.0, 0.25)
    """
    return float(2.0 ** math.ceil(math.log2(number)))


def dyadic_grid(numbers: Iterable[float]) -> float:
    """The largest power of two of which all the numbers are multiples, or 0 if float32 has no room for that.

    >>> dyadic_grid([0.5, 3.0]), dyadic_grid([1, 2]), dyadic_grid([1 / 3])
    (0.5, 1.0, 0.0)
    """
    grid, largest = 1.0, 1.0
    for number in numbers:
        denominator = float(number).as_integer_ratio()[1]
        if denominator > 2**40:
            return 0.0
        grid, largest = min(grid, 1.0 / denominator), max(largest, abs(number))
    return grid if largest / grid < 2**22 else 0.0


def low_bits(numbers: ArrayLike) -> NDArray[Any]:
    """The largest power of two that each number is a multiple of; infinity for 0.

    >>> low_bits(np.array([6.0, 0.75, 0.0])).tolist()
    [2.0, 0.25, inf]
    """
    mantissa, exponent = np.frexp(np.asarray(numbers, np.float64))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(whole == 0, np.inf, np.ldexp(lowest, exponent - 53))


def mean_error(keys: int, largest: float, error: float) -> float:
    """Error of a mean over up to `keys` numbers of size `largest`, each off by `error`.

    The weights 1/w carry 3 roundings, their products with the values one more. Adding up n equal terms to S, a step in
    the binade [b, 2b) is off by at most U b. With S = x b, 1 <= x < 2, there are n (x-1)/x such steps, and n/(2x) in
    the binade below at half the error, n/(4x) at a quarter, and so on: U b n (x - 2/3)/x in all, at most 3/8 n U S.
    """
    return error + (keys * 3 / 8 + 8) * U * largest


def sum_error(keys: int, largest: float, error: float, weight: float) -> float:
    """Error of a sum over up to `keys` numbers, per key: read as a mean with BOS at `weight` C (`heads.py`).

    The sum comes with a factor between 1 and 1 - keys/C.
    """
    return mean_error(keys, largest, error) + keys / weight * largest


def leak(gap: float, keys: int) -> float:
    """The most attention that goes astray among up to `keys` keys, BOS not counted: 0 unless the gap was made small.

    Relative to what is attended to, BOS has at most exp(-gap/2); other keys have exp(-gap), and where nothing is
    selected exp(-gap/2) against BOS.

    >>> leak(256.0, 100), leak(40.0, 5) < 2e-8
    (0.0, True)
    """
    return 0.0 if gap >= 208 else (keys + 1) * math.exp(-gap / 2)


def share_error(keys: int) -> float:
    """Error of the attention BOS receives, c/(c+w): one exponential, a sum of w+1 positive terms, a division.

    The sum is bounded as if it were added in runs of at most 64 terms, as vectorised sums are.
    """
    return (16 + min(keys, 64)) * U
