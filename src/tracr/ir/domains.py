"""The domain of an s-op: the values it can take, a finite set or an interval of numbers.

A domain may contain values that never occur. Equal values (`1`, `1.0`, `True`) are one value with one code; `twins`
lists the other representatives that can occur, to detect a function that tells them apart. If the compiler assumes
that numbers which differ only by rounding are equal (`pipeline.py`), these are one value with twins, too.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.nearness import apart, margin
from tracr.rational import fraction_of
from tracr.values import Value, is_number, sort_values

__all__ = ["Codes", "Domain", "Finite", "Interval", "finite", "of_values", "surely_same"]

Codes = NDArray[np.int32]
BULK = 200  # from this many values on, an array of objects is worth making
NO_TWINS: Mapping[int, tuple[Value, ...]] = MappingProxyType({})
NUMBERS, NONE = frozenset({bool, int, float}), type(None)
PLAIN = NUMBERS | {str, NONE}
SMALL, KEPT = 64, 4096  # domains of at most this many values are kept, and how many of them


@dataclass(frozen=True, eq=False)
class Finite:
    """A finite set of values; a value's code is its place in `values`."""

    values: tuple[Value, ...]
    twins: Mapping[int, tuple[Value, ...]] = field(default_factory=lambda: NO_TWINS)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values and twins only; cached properties are computed again."""
        return _restored, (self.values, dict(self.twins))

    @cached_property
    def index(self) -> dict[Value, int]:
        """From value to code; from twins, too."""
        twins = {twin: code for code, others in self.twins.items() for twin in others}
        return twins | {value: code for code, value in enumerate(self.values)}

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values as numbers, `None` as 0."""
        if self.kinds <= NUMBERS:
            try:
                return np.array(self.values, dtype=np.float64)
            except OverflowError:  # an integer that is too large for a float
                pass
        return np.array([_as_float(value) for value in self.values])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number; 0 if there are no numbers."""
        numbers = self.numbers if self.kinds <= NUMBERS else self.numbers[self.of_numbers]
        return (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)

    @property
    def size(self) -> int:
        """How many values are listed."""
        return len(self.values)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The types of the values."""
        return frozenset(map(type, self.values))

    @cached_property
    def column(self) -> NDArray[np.object_]:
        """The values as an array of objects."""
        return np.fromiter(self.values, dtype=object, count=len(self))

    def listed(self, codes: Codes) -> list[Value]:
        """The values of codes."""
        if len(codes) > BULK:
            return self.column[codes].tolist()  # type: ignore[no-any-return]
        return list(map(self.values.__getitem__, codes.tolist()))

    @property
    def codes(self) -> Codes:
        """All codes."""
        return np.arange(len(self.values), dtype=np.int32)

    @cached_property
    def numeric(self) -> bool:
        """Whether every value but `None` is a number that a float can hold."""
        return all(kind is NONE or issubclass(kind, (int, float)) for kind in self.kinds) and bool(
            np.isfinite(self.numbers).all()
        )

    @cached_property
    def of_numbers(self) -> NDArray[np.intp]:
        """The codes of the numbers."""
        if self.kinds <= NUMBERS:
            return np.arange(len(self))
        return np.flatnonzero([is_number(value) for value in self.values])

    @cached_property
    def others(self) -> NDArray[np.intp]:
        """The codes of the values that are not numbers."""
        if self.kinds <= NUMBERS:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero([not is_number(value) for value in self.values])

    @cached_property
    def ascending(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The codes of the numbers in ascending order, and the midpoints between neighbours."""
        codes = self.of_numbers
        codes = codes[np.argsort(self.numbers[codes], kind="stable")]
        lower, upper = self.numbers[codes][:-1], self.numbers[codes][1:]
        middles = lower + (upper - lower) / 2
        return codes, np.where(middles >= upper, lower, middles)  # the midpoint of adjacent floats may round up

    @cached_property
    def closest(self) -> float:
        """The smallest distance between two numbers that differ by more than rounding; 1 if there are no two."""
        numbers = self.numbers[self.ascending[0]]
        return float(np.diff(numbers[apart(numbers)]).min(initial=np.inf)) if apart(numbers).sum() > 1 else 1.0

    @property
    def maybe_none(self) -> bool:
        """Whether `None` is among the values."""
        return NONE in self.kinds

    def __len__(self) -> int:
        return len(self.values)

    def representatives(self, code: int) -> tuple[Value, ...]:
        """The value, and the values equal to it that can occur."""
        return (self.values[code], *self.twins.get(code, ()))

    def key(self) -> tuple[object, ...]:
        """Equal for equal domains: the values with their types."""
        return (self.values, tuple(map(type, self.values)), tuple(sorted(self.twins)))

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.values[:8]))
        return f"{{{shown}, ... {len(self)} values}}" if len(self) > 8 else f"{{{shown}}}"


def _restored(values: tuple[Value, ...], twins: Mapping[int, tuple[Value, ...]]) -> Finite:
    return Finite(values, MappingProxyType(twins))


@dataclass(frozen=True)
class Interval:
    """Numbers between `low` and `high`, perhaps `None` too.

    `reason` says why the values are not listed one by one.
    """

    low: float
    high: float
    maybe_none: bool
    reason: str

    numeric = True
    size = 0

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number."""
        return self.low, self.high

    def holds(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each number (NaN is `None`) lies in it, up to rounding."""
        slack: float = margin(max(abs(self.low), abs(self.high)))
        inside = (numbers >= self.low - slack) & (numbers <= self.high + slack)
        return inside | (np.isnan(numbers) if self.maybe_none else False)

    def key(self) -> tuple[object, ...]:
        """Equal for equal domains."""
        return (self.low, self.high, self.maybe_none)

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]" + (" or None" if self.maybe_none else "")


Domain = Finite | Interval


def of_values(values: tuple[Value, ...]) -> Finite:
    """The domain of these different values, without twins.

    The same small domains (`0` to `5`, the vocabulary) occur in many programs. Those of plain values are kept, with
    the properties that were computed of them.

    >>> of_values((1, 2)) is of_values((1, 2)), of_values((1, 2)) is of_values((True, 2))
    (True, False)
    """
    kinds = tuple(map(type, values))
    if len(values) > SMALL or not PLAIN.issuperset(kinds):
        return Finite(values)
    return _kept(values, kinds, repr(values[values.index(0)]) if 0 in values else "")


@functools.lru_cache(maxsize=KEPT)
def _kept(values: tuple[Value, ...], kinds: tuple[type, ...], zero: str) -> Finite:
    """`of_values`, by all that tells equal values apart: their types and the sign of zero."""
    return Finite(values)


def finite(representatives: Iterable[Value], *, ordered: bool = False, near: float = 0.0) -> Finite:
    """The set of these values, sorted unless already `ordered`; equal ones become twins.

    Numbers closer than `near` times the largest number also become twins; the simplest of them is the value.

    >>> domain = finite([2, 1, True, 1.0])
    >>> domain.values, domain.representatives(0)
    ((1, 2), (1, True, 1.0))
    >>> from tracr.nearness import TWINS
    >>> finite([1.4700000000000002, 1.47, 2], near=TWINS).representatives(0)
    (1.47, 1.4700000000000002)
    """
    domain = _equal_as_one(representatives, ordered=ordered)
    return _near_as_one(domain, near) if near else domain


def _equal_as_one(representatives: Iterable[Value], *, ordered: bool) -> Finite:
    listed = list(representatives)
    distinct = dict.fromkeys(listed)
    values: Sequence[Value] = list(distinct) if ordered else sort_values(distinct)
    if len(distinct) == len(listed) or surely_same(set(map(type, listed)), distinct):
        return of_values(tuple(values))
    counts = Counter(listed)
    groups: dict[Value, list[Value]] = {}
    for value in listed:
        if counts[value] > 1:
            group = groups.setdefault(value, [value])
            if group[0] is not value and all(differ(value, member) for member in group):
                group.append(value)
    twins = {code: tuple(groups[value][1:]) for code, value in enumerate(values) if value in groups}
    twins = {code: others for code, others in twins.items() if others}
    return Finite(tuple(values), MappingProxyType(twins))


def _near_as_one(domain: Finite, near: float) -> Finite:
    """The domain with neighbouring numbers that are near each other as one value."""
    codes = domain.ascending[0]
    numbers = domain.numbers[codes]
    different = apart(numbers, near, scale=float(np.abs(numbers).max(initial=0.0)))
    if different.all():
        return domain
    twins = dict(domain.twins)
    kept = set(range(len(domain)))
    for group in np.split(codes, np.flatnonzero(different[1:]) + 1):
        first, *others = sorted(group.tolist(), key=lambda code: fraction_of(float(domain.numbers[code])).denominator)
        for other in others:
            twins[first] = (*twins.get(first, ()), *domain.representatives(other))
            kept.discard(other)
    place = {code: number for number, code in enumerate(sorted(kept))}
    values = tuple(domain.values[code] for code in place)
    return Finite(values, MappingProxyType({place[code]: twins[code] for code in sorted(kept) if code in twins}))


def surely_same(kinds: Set[type], distinct: Collection[Value]) -> bool:
    """Whether, for values of these types, equal to one of the distinct values means identical: the usual case."""
    return kinds <= PLAIN and len(kinds & NUMBERS) <= 1 and (float not in kinds or 0.0 not in distinct)


def _as_float(value: Value) -> float:
    """A number as a float (infinite if it is too large for one); 0 for anything else."""
    try:
        return float(value) if is_number(value) else 0.0
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def differ(first: Value, second: Value) -> bool:
    """Whether a function could tell two equal values apart."""
    if type(first) is not type(second):
        return True
    if isinstance(first, str | int):
        return False
    return repr(first) != repr(second)
