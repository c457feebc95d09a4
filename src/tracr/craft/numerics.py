"""The rounding errors of a compiled model in float32: the logit gap, and bounds on the errors of stored values.

Weights are derived in float64 and run in float32, whose unit roundoff is U = 2**-24. Each variable has a bound on its
error, and a construction is used only if its bound is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracr.craft.formats import FLOAT32, Format

__all__ = [
    "EXACT",
    "GAP",
    "LANES",
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
"""Logits are 0 for selected keys and -GAP for the rest; `Options.gap` can replace it. BOS, the default, has -GAP/2.
exp(-104) is already 0 in float32; therefore the weights of -128 and -256 are exactly 0. Powers of two are exact in
every float format."""

LANES = 16
"""Assumed of backends where a bound says so: sums of products are computed in at least this many lanes."""

RUN = 64
"""Assumed of backends, only for more than 84 keys: sums over keys are computed in runs of at most this many terms.

Bounds that name neither hold for sums in any order. The certificate (docs/certificate.md) assumes neither.
"""

CLEAN = 2e-6
"""A one-hot code whose hot coordinate is this close to 1 needs no clean-up."""

OUTPUT_TOLERANCE = 1e-3
"""The largest allowed error bound of an output number, times max(1, |number|). True errors are far smaller."""

TOO_ROUGH = 0.2
"""A one-hot code with a larger error than this cannot be cleaned any more."""

NUMBER_TOLERANCE = 5e-5
"""The largest error that an MLP may add to a number, times max(1, |number|)."""


@dataclass(frozen=True)
class Noise:
    """Bounds on the error of a stored code.

    `error`: of the number, or of the hot coordinate of a one-hot code. `cold`: of its other coordinates. `grid`: if not
    0, what is stored is a multiple of it, so fixed-point arithmetic on it is exact. In a short format, a number with a
    grid was within `error` before it was rounded to the nearest multiple.
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


def dyadic_grid(numbers: Iterable[float], to: Format = FLOAT32) -> float:
    """The largest power of two that divides all the numbers, or 0 if the format does not hold them as its multiples.

    >>> dyadic_grid([0.5, 3.0]), dyadic_grid([1, 2]), dyadic_grid([1 / 3])
    (0.5, 1.0, 0.0)
    """
    grid, largest = 1.0, 1.0
    for number in numbers:
        denominator = float(number).as_integer_ratio()[1]
        if denominator > 2**40:
            return 0.0
        grid, largest = min(grid, 1.0 / denominator), max(largest, abs(number))
    return grid if largest / grid < (to.steps + 1 if to.short else 2**22) else 0.0


def low_bits(numbers: ArrayLike) -> NDArray[Any]:
    """The largest power of two that divides each number; infinity for 0.

    >>> low_bits(np.array([6.0, 0.75, 0.0])).tolist()
    [2.0, 0.25, inf]
    """
    mantissa, exponent = np.frexp(np.asarray(numbers, np.float64))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(whole == 0, np.inf, np.ldexp(lowest, exponent - 53))


def mean_error(keys: int, largest: float, error: float) -> float:
    """Error of a mean over up to `keys` numbers of size `largest`, each with an error of `error`.

    The weights 1/w have 3 roundings, their products with the values one more. When n equal terms are added up to S, the
    error of a step in the binade [b, 2b) is at most U b. With S = x b, 1 <= x < 2, there are n (x-1)/x such steps, and
    n/(2x) in the binade below with half the error, n/(4x) with a quarter, and so on. In all this is
    U b n (x - 2/3)/x, at most 3/8 n U S. No other order of the sum has larger partial sums than one after another.
    """
    return error + (keys * 3 / 8 + 8) * U * largest


def sum_error(keys: int, largest: float, error: float, weight: float) -> float:
    """Error, per key, of a sum over up to `keys` numbers that is read as a mean with BOS at `weight` C (`heads.py`).

    The sum is multiplied by a factor between 1 and 1 - keys/C.
    """
    return mean_error(keys, largest, error) + keys / weight * largest


def leak(gap: float, keys: int) -> float:
    """The largest share of attention on keys that are not selected, among up to `keys` keys (BOS not counted).

    It is 0 unless the gap was made small. Relative to a selected key, BOS has at most exp(-gap/2), and other keys have
    exp(-gap). If no key is selected, they have exp(-gap/2) relative to BOS.

    >>> leak(256.0, 100), leak(40.0, 5) < 2e-8
    (0.0, True)
    """
    return 0.0 if gap >= 208 else (keys + 1) * math.exp(-gap / 2)


def share_error(keys: int) -> float:
    """Error of the attention BOS receives, c/(c+w): one exponential, a sum of w+1 positive terms, a division.

    In any order, the sum of c and w ones is off by U times the sum of all partial results. This is largest for a chain
    that begins with c: c w + w(w+1)/2, relative to c + w at most 3/4 keys + 1/4 for w <= keys = c. The bound covers
    this for up to 84 keys; for more, the sum is assumed to have runs of at most `RUN` terms.
    """
    return (16 + min(keys, RUN)) * U
