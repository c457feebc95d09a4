"""The values RASP computes with: any hashable Python object.

Values are compared with `==`, so `True`, `1` and `1.0` are one value. `docs/semantics.md` is the long form.
"""

from __future__ import annotations

import contextlib
import math
import sys
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np

from tracr.errors import ExpressionError, TracrError
from tracr.rational import rounded_mean

__all__ = [
    "LARGEST_VALUE",
    "LONGEST_STRING",
    "PLAIN",
    "Computation",
    "Number",
    "Value",
    "as_value",
    "comparing_values",
    "exact_mean",
    "is_number",
    "short_repr",
    "sort_values",
    "value_text",
]

Value = Hashable
Number = int | float
LARGEST_VALUE = 2**4096  # a larger integer is refused, lest a program's numbers fill the memory
LONGEST_STRING = 100_000  # characters; a longer text is refused likewise
NUMBERS = (int, float)
PLAIN: dict[type, Callable[[Any], bool]] = {
    type(None): lambda value: True,
    bool: lambda value: True,
    int: lambda value: -LARGEST_VALUE < value < LARGEST_VALUE,
    float: math.isfinite,
    str: lambda value: len(value) < LONGEST_STRING,
}  # the usual types, and a test whether an object of the type is a value without conversion


class Computation:
    """Marks objects that describe a computation (every expression): hashable, but not values."""

    __slots__ = ()


def is_number(value: object) -> TypeGuard[Number]:
    """Whether `value` can be averaged: an int, a float or a bool.

    >>> is_number(True), is_number("1"), is_number(None)
    (True, False, False)
    """
    return isinstance(value, NUMBERS)


def as_value(value: Any, *, where: str = "a RASP value") -> Value:
    """`value` as a RASP value: numpy scalars become Python's, inside tuples too; other objects are refused.

    >>> import numpy as np
    >>> as_value(np.float32(0.5))
    0.5
    """
    if value is None or value is True or value is False:
        return value
    surely = PLAIN.get(type(value))
    if surely is not None and surely(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, np.generic):
        item = value.item()
        value = float(item) if isinstance(item, np.floating) else item  # longdouble's item() is itself
    elif type(value) is tuple:
        inside = f"an element of {where}"
        value = tuple([as_value(element, where=inside) for element in value])
    elif isinstance(value, Computation):
        raise ExpressionError(
            f"{where} is the expression {value!r}, which is a program, not a value",
            hint="combine s-ops with operators or rasp.SequenceMap; a constant is a plain Python value",
        )
    _check_size(value, where)
    _check_comparable(value, where)
    return value  # type: ignore[no-any-return]


def _check_size(value: object, where: str) -> None:
    """Refuse a number that is not finite, and a value so large that it would fill the memory."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError(
            f"{where} is {value!r}, which is not a number a transformer can hold",
            hint="use None for 'no value', or a finite number",
        )
    if (isinstance(value, int) and abs(value) > LARGEST_VALUE) or (
        isinstance(value, str) and len(value) > LONGEST_STRING
    ):
        raise ExpressionError(
            f"{where} is a {type(value).__name__} that is too large to compute with", hint="use smaller values"
        )


def _check_comparable(value: object, where: str) -> None:
    """Refuse a value that cannot be hashed, or compared with itself."""
    try:
        hash(value)
    except TypeError:
        raise ExpressionError(
            f"{where} is {short_repr(value)}, which is not hashable", hint="use a tuple instead of a list or a set"
        ) from None
    except Exception as error:
        raise _incomparable(where, value, error) from error
    try:
        same = bool(value == value)
    except Exception as error:
        raise _incomparable(where, value, error) from error
    if not same:
        raise ExpressionError(
            f"{where} is {short_repr(value)}, which is not equal to itself", hint="use None for 'no value'"
        )


def _incomparable(where: str, value: object, error: Exception) -> ExpressionError:
    return ExpressionError(
        f"{where} is {short_repr(value)}, which cannot be compared: {type(error).__name__}: {error}",
        hint="a value's class needs a __hash__ and an __eq__ that do not raise",
    )


@contextlib.contextmanager
def comparing_values() -> Iterator[None]:
    """Report errors that the user's own values raise when they are hashed, compared, sorted or shown.

    An error comes from a value if this package called the user's code last.
    """
    try:
        yield
    except TracrError:
        raise
    except Exception as error:
        modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
        roots = [module.partition(".")[0] for module in modules]
        called = roots[len(roots) - roots[::-1].index("tracr") :] if "tracr" in roots else []
        if sys.stdlib_module_names | {"numpy"} >= set(called):
            raise
        raise ExpressionError(
            f"a value raises when it is hashed, compared or shown: {type(error).__name__}: {error} (in {modules[-1]})",
            hint="a value's class needs methods that do not raise, also when compared with other values",
        ) from error


def exact_mean(numbers: Sequence[Number]) -> float:
    """The exact mean of the fractions that the numbers represent (`rational.py`), rounded once, in any order.

    >>> exact_mean([1e16, 1.0, -1e16])
    0.3333333333333333
    """
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers) / len(numbers)
    return rounded_mean(tuple(numbers))


def _type_rank(kind: type) -> int:
    if issubclass(kind, NUMBERS):
        return 0
    return {str: 1, bytes: 2, tuple: 3, type(None): 9}.get(kind, 4)


def value_text(value: object) -> str:
    """A value as labels show it; a set always in the same order.

    >>> value_text("a"), value_text(0.5), value_text(frozenset({"b", "a"}))
    ('a', '0.5', "{'a', 'b'}")
    """
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(repr, sort_values(value))) + "}"
    return str(value)


def short_repr(value: object) -> str:
    """A value in a message: its `repr`, cut if it is long.

    >>> short_repr(10**100)
    '1000000000000000000000000000000000000...'
    """
    try:
        text = repr(value)
    except Exception:  # from a class of the user
        text = f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= 40 else f"{text[:37]}..."


def sort_values(values: Iterable[Value]) -> list[Value]:
    """Sorted by (type rank, value): numbers, strings, tuples, others, `None` last; others keep their order.

    >>> sort_values(["b", None, 2, "a", 1.5])
    [1.5, 2, 'a', 'b', None]
    """
    values = list(values)
    rank_of = {kind: _type_rank(kind) for kind in set(map(type, values))}
    ordered: list[Value] = []
    for rank in sorted(set(rank_of.values())):
        group: list[Any] = [value for value in values if rank_of[type(value)] == rank]
        try:
            group = sorted(group)
        except TypeError:  # values without an order, such as mixed tuples: sorted by their text, which is stable
            group = sorted(group, key=repr)
        ordered += group
    return ordered
