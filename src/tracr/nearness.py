"""When two numbers count as one: the one comparison up to rounding, and what each tolerance is for.

A tolerance is relative for numbers above 1 and absolute below: |x - y| <= tolerance * max(1, |x|). Where the numbers
have another scale, as those of one domain have, the caller names it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.values import Value, is_number

__all__ = ["ANSWER", "CANCELLED", "LAST_SUM", "ROUNDING", "TWINS", "apart", "margin", "nearly_equal", "same_value"]

ROUNDING = 1e-9
"""One number computed in float64 in two ways (1/3 and 1 - 2/3). Different values of a program are farther apart."""

TWINS = 2.0**-48
"""The same as closely as float64 allows, relative to the largest number of the domain: two values so close are taken
for one only where the program cannot be compiled otherwise (`pipeline.py`), and the assumption is reported."""

CANCELLED = 1e-12
"""A sum that is meant to be 0, relative to its terms."""

LAST_SUM = 1e-6
"""The rounding of one sum in float32, on top of a variable's own error bound."""

ANSWER = 1e-4
"""A number that a model computes in float32 against the program's, where no error bound is at hand."""


def margin(number: Any, tolerance: float = ROUNDING) -> Any:
    """How far another number may be from this one (or these, an array) and count as equal.

    >>> margin(0.5), margin(4)
    (1e-09, 4e-09)
    """
    size = abs(number)
    return tolerance * (np.maximum(1.0, size) if isinstance(size, np.ndarray) else max(1.0, size))


def nearly_equal(first: Any, second: Any, tolerance: float = ROUNDING, *, scale: float | None = None) -> Any:
    """Whether two numbers, or each of two arrays, are one up to a tolerance; NaN is equal to nothing.

    `scale` takes the place of max(1, |first|). Integers beyond what float64 holds are compared exactly.

    >>> nearly_equal(1 / 3, 1 - 2 / 3), nearly_equal(1e-12, 2e-12), nearly_equal(1e-12, 2e-12, scale=2e-12)
    (True, True, False)
    """
    try:
        return abs(first - second) <= (margin(first, tolerance) if scale is None else tolerance * scale)
    except OverflowError:  # an integer beyond what float64 holds
        return first == second


def apart(ascending: Any, tolerance: float = ROUNDING, *, scale: float | None = None) -> NDArray[np.bool_]:
    """Whether each number of a sorted array is another one than the number before it; the first always is.

    >>> apart([1 / 3, 1 - 2 / 3, 0.5]).tolist()
    [True, False, True]
    """
    numbers = np.asarray(ascending)
    found = np.ones(numbers.shape, dtype=bool)
    found[..., 1:] = ~nearly_equal(numbers[..., 1:], numbers[..., :-1], tolerance, scale=scale)
    return found


def same_value(first: Value, second: Value, tolerance: float = ROUNDING) -> bool:
    """Whether two values are one: equal, or numbers that are equal up to a tolerance.

    >>> same_value(0.1 + 0.2, 0.3), same_value("a", "b"), same_value(0, None), same_value(10**400, 2 * 10**400)
    (True, False, False, False)
    """
    if is_number(first) and is_number(second):
        return bool(nearly_equal(first, second, tolerance))
    return first == second
