"""Formats of floating-point numbers in which a model's weights and activations are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FLOAT32", "SHORT", "STORED", "Format"]


@dataclass(frozen=True)
class Format:
    """Numbers of `bits` significant bits up to `largest`; neighbours near 0 differ by 2**`lowest`.

    `stored`: weights and activations have this format. Otherwise only the factors of products do.
    """

    name: str
    bits: int
    largest: float
    lowest: int
    stored: bool = True

    @property
    def roundoff(self) -> float:
        """The largest relative error of one rounding."""
        return 2.0**-self.bits

    @property
    def smallest(self) -> float:
        """The distance between neighbours near 0."""
        return 2.0**self.lowest

    @property
    def steps(self) -> float:
        """The format holds the multiples of a power of two g up to `steps` times g."""
        return 2.0**self.bits

    @property
    def short(self) -> bool:
        """Whether it has fewer bits than float32, in which sums are computed."""
        return self.bits < FLOAT32.bits

    def nearest(self, numbers: Any) -> NDArray[np.float64]:
        """The numbers rounded to this many bits.

        >>> SHORT["bfloat16"].nearest([1 / 3, 257.0]).tolist()
        [0.333984375, 256.0]
        """
        fraction, exponent = np.frexp(np.asarray(numbers, dtype=np.float64))
        return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, self.bits)), exponent - self.bits))

    def holds(self, numbers: Any) -> bool:
        """Whether all of the numbers have this many bits, and are not too large.

        >>> SHORT["bfloat16"].holds([256.0, 0.5]), SHORT["bfloat16"].holds(257.0)
        (True, False)
        """
        given = np.asarray(numbers, dtype=np.float64)
        return bool((self.nearest(given) == given).all() and np.abs(given).max(initial=0.0) <= self.largest)


_LARGEST = float(np.finfo(np.float32).max)

FLOAT32 = Format("float32", 24, _LARGEST, -149)

SHORT = {
    short.name: short
    for short in (
        Format("float16", 11, 65504.0, -24),
        Format("bfloat16", 8, _LARGEST * (1 - 2.0**-8), -126),  # smaller numbers may become 0
        Format("tf32", 10, _LARGEST, -126, stored=False),  # of 11 bits, the last perhaps cut off, not rounded
    )
}

STORED = {one.name: one for one in (FLOAT32, *SHORT.values()) if one.stored}
"""The formats that models are compiled for."""
