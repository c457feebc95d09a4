"""The arithmetics by name: what a backend may do to a number while it computes.

The theorem holds for every execution that conforms to the named arithmetic. An execution conforms if:

- **dot**: a dot product (with its bias) is the value of some tree of additions over its products; any order, fused
  multiply-adds or not, products with a zero left out or not; every product and addition gives a number of sum_bits
  bits with a relative error of at most u = 2^-sum_bits, and is exact if the exact result is such a number (or they all
  have so many bits more that storing is nearly the only error);
- **store**: the result of a dot product, of adding a bias to it (at once or later), of an addition to the stream, of
  relu and of softmax is rounded to the nearest number of `stored_bits` bits, either one if two are equally near
  (relative error at most 2^-stored_bits; exact if it fits; monotonic);
- **softmax**: the largest score is subtracted from all scores; exp of a number x has a relative error of at most
  (`exp_error` + |x|) u; exp(0) = 1; below -`apart` it is 0, or where the arithmetic leaks at most twice its value;
  the quotient has a relative error of at most 3 u;
- **copy**: where one key has all the weight, its weight is exactly 1 and the sum over keys its value, or both are
  within `copy_error` u of these, rounding included; the other keys add at most twice their part before the sum is
  rounded, to the nearest number;
- **flush**: results smaller than `tiny` (stored ones: than `stored_tiny`) are replaced by 0, either all or none; no
  number larger than `largest` occurs (the checker proves it).

Excluded: TF32, products like Strassen's, sums in less than 32 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ARITHMETICS", "Arithmetic"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Arithmetic:
    """One set of assumptions; the module's docstring says what each number means."""

    name: str
    sum_bits: int
    stored_bits: int
    cast: Callable[[NDArray[Any]], Array]
    apart: float
    leaks: bool
    copy_error: float = 0.0
    exp_error: float = 8.0
    tiny: float = 2.0**-126
    stored_tiny: float = 2.0**-126
    largest: float = 1e30

    @property
    def unit(self) -> float:
        """The relative error of one operation, with that of the checker's own subtraction from a bound of errors."""
        return 2.0**-self.sum_bits + 2.0**-53

    @property
    def stored_unit(self) -> float:
        """The relative error of storing a number, with that of the checker's own subtraction."""
        return 2.0**-self.stored_bits + 2.0**-53

    def sums(self, reach: Any, grid: Any) -> Any:
        """Whether sums are exact: of multiples of a grid, no partial sum of which is larger than `reach`.

        They have at most 52 bits in float64, where the checker's own sum of their sizes may be rounded.
        """
        return (reach <= 2.0 ** min(self.sum_bits, 52) * grid) & (grid >= self.tiny)

    def stores(self, size: Any, grid: Any) -> Any:
        """Whether multiples of a grid up to this size are stored exactly, and are so as partial sums, too."""
        return (size <= 2.0 ** min(self.stored_bits, 52) * grid) & (grid >= self.stored_tiny)

    @property
    def narrow(self) -> bool:
        """Whether numbers are stored in fewer bits than sums have."""
        return self.stored_bits < self.sum_bits

    @property
    def storing(self) -> float:
        """The relative error of storing the result of a sum; 0 if numbers have as many bits as sums."""
        return self.stored_unit if self.narrow else 0.0

    @property
    def copies(self) -> float:
        """The relative error of a value that has all the weight of a head."""
        return self.copy_error * self.unit

    def nearest(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Bounds of what numbers between lo and hi are stored as; lo > 0 and not tiny.

        Rounding to the nearest is monotonic: if x <= y, it does not give more for x than for y, except that of two that
        are equally near either may be taken. So lo is rounded (the smaller one of two), and hi (the larger one). In
        float64 the scaling is exact; so are the sums with 1/2, of numbers below 2^stored_bits <= 2^11.
        """
        if not self.narrow:
            return lo, hi
        (low, low_at), (high, high_at) = np.frexp(lo), np.frexp(hi)
        below = np.ceil(np.ldexp(low, self.stored_bits) - 0.5)
        above = np.floor(np.ldexp(high, self.stored_bits) + 0.5)
        return np.ldexp(below, low_at - self.stored_bits), np.ldexp(above, high_at - self.stored_bits)

    def gamma(self, operations: Any) -> Any:
        """The relative error of a sum after so many operations: k u / (1 - k u); none is known from k u = 1/2 on."""
        off = np.minimum(np.asarray(operations, np.float64) * self.unit, 0.5)
        return np.where(off < 0.5, off / (1 - off), np.inf)[()]

    def leak(self, keys: int) -> float:
        """The most weight that `keys` keys have together if their scores are `apart` below the largest."""
        return (keys + 2) * math.exp(-self.apart) * 2.1 if self.leaks else 0.0

    def assumptions(self) -> tuple[str, ...]:
        """What an execution must do to conform, in sentences."""
        stored = f", and numbers are stored as the nearest one of {self.stored_bits} bits" if self.narrow else ""
        far = "is tiny" if self.leaks else "is 0"
        copied = "exactly" if not self.copy_error else f"up to {self.copy_error:g} units of 2^-{self.sum_bits}"
        return (
            f"sums are computed in {self.sum_bits} bits in any order, with or without fused multiply-adds{stored}",
            f"softmax subtracts the largest score, and the weight of a key {self.apart:g} below it {far}",
            f"a value with all the weight of a head is copied {copied}",
            f"results below {self.tiny:.3g} are all replaced by 0, or none is",
            "no TF32, no Strassen-like products",
        )


def _to(kind: type[np.floating[Any]]) -> Callable[[NDArray[Any]], Array]:
    """Rounds to a format of numpy."""
    return lambda array: array.astype(kind).astype(np.float64)


def _float16(array: NDArray[Any]) -> Array:
    """Round to the nearest float16; NaN where rounding to float32 first, as torch does, gives another one."""
    found, other = (one.astype(np.float16).astype(np.float64) for one in (array, array.astype(np.float32)))
    return np.where(found == other, found, np.nan)


def _bfloat16(array: NDArray[Any]) -> Array:
    """Round to float32, as all backends do, then to the nearest bfloat16, ties to even; NaN stays NaN."""
    given = np.ascontiguousarray(array, np.float32)
    bits = given.view(np.uint32).astype(np.uint64)
    kept = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16) << np.uint64(16)
    return np.where(np.isnan(given), np.nan, kept.astype(np.uint32).view(np.float32).astype(np.float64))


ARITHMETICS = {
    one.name: one
    for one in (
        Arithmetic("float64", 53, 53, _to(np.float64), 100.0, leaks=True),
        Arithmetic("float32", 24, 24, _to(np.float32), 104.0, leaks=False),
        Arithmetic("float32-leak", 24, 24, _to(np.float32), 87.0, leaks=True),
        Arithmetic("float32-fused", 24, 24, _to(np.float32), 87.0, leaks=True, copy_error=16.0),
        Arithmetic("float16", 24, 11, _float16, 104.0, leaks=False, stored_tiny=2.0**-14, largest=6e4),
        Arithmetic("bfloat16", 24, 8, _bfloat16, 104.0, leaks=False),
    )
}
"""All arithmetics, by name."""
