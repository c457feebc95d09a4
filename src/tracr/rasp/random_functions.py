"""The functions of random programs: pure, printable, and defined on every value of the kinds they take.

Equal values give equal results: no function distinguishes `True`, `1` and `1.0`.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tracr.values import Number, Value, is_number

__all__ = [
    "Either",
    "KeyIs",
    "Near",
    "Offset",
    "Steps",
    "Sum",
    "Table",
    "ValueKind",
    "When",
    "differ",
    "distance",
    "inverse",
    "key_is_none",
    "kind_of",
    "reciprocal_or_none",
    "same",
    "square",
]


class ValueKind(enum.Enum):
    """The kind of values that an s-op holds, not counting `None`."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    STRING = "string"
    MIXED = "mixed"

    @property
    def numeric(self) -> bool:
        """Whether the values can be averaged and used in arithmetic."""
        return self in (ValueKind.NUMBER, ValueKind.BOOLEAN)

    def ordered_with(self, other: ValueKind) -> bool:
        """Whether `<` between the two never raises."""
        return (self.numeric and other.numeric) or (self is other is ValueKind.STRING)

    def joined(self, other: ValueKind) -> ValueKind:
        """The kind that holds values of both."""
        if self is other:
            return self
        return ValueKind.NUMBER if self.numeric and other.numeric else ValueKind.MIXED


def kind_of(values: Iterable[Value]) -> ValueKind:
    """The kind that holds these values.

    >>> kind_of([True, None]), kind_of([True, 0.5]), kind_of(["a", 1])
    (<ValueKind.BOOLEAN: 'boolean'>, <ValueKind.NUMBER: 'number'>, <ValueKind.MIXED: 'mixed'>)
    """
    present = [value for value in values if value is not None]
    if not present:
        return ValueKind.MIXED
    if all(map(is_number, present)):
        return ValueKind.BOOLEAN if all(isinstance(value, bool) for value in present) else ValueKind.NUMBER
    return ValueKind.STRING if all(isinstance(value, str) for value in present) else ValueKind.MIXED


# Functions of one value.


@dataclass(frozen=True)
class Table:
    """Look the value up; `otherwise` for values not listed.

    >>> Table((("a", 1), ("b", None)), otherwise=-0.5)("c")
    -0.5
    """

    entries: tuple[tuple[Value, Value], ...]
    otherwise: Value

    def __call__(self, x: Value) -> Value:
        return dict(self.entries).get(x, self.otherwise)


@dataclass(frozen=True)
class Steps:
    """A step function of a number: `values[i]` up to and including `bounds[i]`, the last value above all bounds.

    >>> [Steps((0, 1), ("low", "mid", "high"))(x) for x in (0, 0.5, 2)]
    ['low', 'mid', 'high']
    """

    bounds: tuple[Number, ...]
    values: tuple[Value, ...]

    def __call__(self, x: Number) -> Value:
        return self.values[bisect.bisect_left(self.bounds, x)]


def square(x: Number) -> Number:
    """x²."""
    return x * x


def inverse(x: Number) -> float:
    """1 / (1 + |x|)."""
    return 1 / (1 + abs(x))


def reciprocal_or_none(x: Number) -> float | None:
    """1 / x, or `None` for 0."""
    return 1 / x if x else None


# Functions of two values.


def distance(x: Number, y: Number) -> Number:
    """|x - y|."""
    return abs(x - y)


@dataclass(frozen=True)
class When:
    """The first value where the second is above the threshold, else `otherwise`."""

    threshold: Number
    otherwise: Value

    def __call__(self, x: Value, y: Number) -> Value:
        return x if y > self.threshold else self.otherwise


@dataclass(frozen=True)
class Sum:
    """`fst(x) + snd(y)`: a sum of numbers, or strings joined; `None` if either is.

    >>> Sum(Table((("a", 1),), 0), square)("a", 3)
    10
    """

    fst: Callable[[Any], Any]
    snd: Callable[[Any], Any]

    def __call__(self, x: Value, y: Value) -> Any:
        u, v = self.fst(x), self.snd(y)
        return None if u is None or v is None else u + v


# Predicates of a key and a query. Both may be None.


def same(key: Value, query: Value) -> bool:
    """The key equals the query (`None` equals `None`)."""
    return key == query


def differ(key: Value, query: Value) -> bool:
    """The key is not the query."""
    return key != query


def key_is_none(key: Value, query: Value) -> bool:
    """The key is `None`."""
    return key is None


@dataclass(frozen=True)
class KeyIs:
    """The key is `value`, or, `negated`, anything else."""

    value: Value
    negated: bool = False

    def __call__(self, key: Value, query: Value) -> bool:
        return (key == self.value) != self.negated


@dataclass(frozen=True)
class Either:
    """The key is one of `keys`, or the query one of `queries`."""

    keys: tuple[Value, ...]
    queries: tuple[Value, ...]

    def __call__(self, key: Value, query: Value) -> bool:
        return key in self.keys or query in self.queries


@dataclass(frozen=True)
class Near:
    """Two numbers at most `distance` apart; never where one is `None`."""

    distance: Number

    def __call__(self, key: Number | None, query: Number | None) -> bool:
        return key is not None and query is not None and abs(key - query) <= self.distance


@dataclass(frozen=True)
class Offset:
    """The key is the query plus `distance`; never where one is `None`."""

    distance: int

    def __call__(self, key: Number | None, query: Number | None) -> bool:
        return key is not None and query is not None and key == query + self.distance
