"""Exact arithmetic for means and operators: 1/3 and 1 - 2/3 are the same number.

A float represents the one simple fraction that rounds to it, if there is one: 0.1 represents 1/10, and
0.3333333333333333 represents 1/3. Any other float represents itself. Means and operators compute with these numbers and
round once, at the end, so every way to compute a fraction gives the same float.

Simple means a denominator q with q² ulp(x) <= 2**-16, and q <= `LARGEST_DENOMINATOR`. Two different fractions p/q and
r/s are at least 1/(qs) apart, which is 2**16 ulps: so at most one simple fraction rounds to a float, and few floats
that stand for something else have one by chance. Up to 1 that is q <= 262,144, up to 1,000 still q <= 8,192.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

__all__ = ["LARGEST_DENOMINATOR", "exact_power", "exactly", "fraction_of", "rounded", "rounded_mean", "weighted_sum"]

LARGEST_DENOMINATOR = 2**24
CHANCE = 2.0**-16
REMEMBERED = 2**14  # sums and means of floats, the same few in many programs
MOST_POWER = 64  # larger powers take long to compute exactly

Number = int | float


@functools.lru_cache(maxsize=2**18)
def fraction_of(number: Number) -> Fraction:
    """The fraction that a float represents.

    >>> fraction_of(0.1), fraction_of(1 / 3), fraction_of(2**0.5) == Fraction(2**0.5)
    (Fraction(1, 10), Fraction(1, 3), True)
    """
    binary = Fraction(number)
    if isinstance(number, int) or binary.denominator == 1:
        return binary
    largest = math.isqrt(int(min(CHANCE / math.ulp(number), LARGEST_DENOMINATOR**2)))
    if binary.denominator <= largest or not largest:
        return binary
    near = binary.limit_denominator(largest)
    return near if rounded(near) == number else binary


def rounded(fraction: Fraction | int) -> float:
    """The float nearest to a fraction."""
    return fraction.numerator / fraction.denominator


def exactly(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The operator, computing with the fractions that floats represent and rounding once; unchanged on other values.

    >>> import operator
    >>> exactly(operator.add)(0.1, 0.2), exactly(operator.mod)(0.3, 0.2), exactly(operator.add)("a", "b")
    (0.3, 0.1, 'ab')
    """

    def exact(x: Any, y: Any) -> Any:
        result = compute(x, y)  # raises as Python does
        if type(result) is not float or (type(x) is not float and type(y) is not float) or not math.isfinite(result):
            return result
        found = compute(fraction_of(x), fraction_of(y))
        return rounded(found) if isinstance(found, int | Fraction) else result

    return exact


def exact_power(power: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same for powers with integer exponents up to `MOST_POWER`; others are irrational or take long."""
    exact = exactly(power)

    def chosen(x: Any, y: Any) -> Any:
        small = isinstance(y, Number) and y == math.floor(y) and abs(y) <= MOST_POWER
        return exact(x, y) if small else power(x, y)

    return chosen


def weighted_sum(first: Any, x: Any, second: Any, y: Any) -> Any:
    """first * x + second * y, rounded once.

    >>> weighted_sum(2, 1 / 3, -1, 2 / 3), weighted_sum(2, 3, 1, 4)
    (0.0, 10)
    """
    result = first * x + second * y
    if type(result) is not float or not math.isfinite(result):
        return result
    return _rounded_sum(first, x, second, y)


@functools.lru_cache(maxsize=REMEMBERED)
def _rounded_sum(first: Number, x: Number, second: Number, y: Number) -> float:
    """`weighted_sum` of numbers as a float, which is the same for equal numbers of any type."""
    return rounded(fraction_of(first) * fraction_of(x) + fraction_of(second) * fraction_of(y))


@functools.lru_cache(maxsize=REMEMBERED)
def rounded_mean(numbers: tuple[Number, ...]) -> float:
    """The mean of the fractions that the numbers represent, rounded once.

    >>> rounded_mean((1 / 3, 2 / 3, 0.5))
    0.5
    """
    return rounded(sum(map(fraction_of, numbers), Fraction(0)) / len(numbers))
