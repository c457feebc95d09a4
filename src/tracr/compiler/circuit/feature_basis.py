"""The directions from which readers compute their columns.

Columns that are multiples of each other share a direction. If all reads are exact, columns that differ by a constant
share one too, and the constant becomes a bias. Columns that are quadratic polynomials of a number are read from the
number and its square. There are no new roundings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.craft.grouping import row_keys
from tracr.craft.variables import NUMBER, Array, Feature, Number, Variable
from tracr.rasp.annotations import Encoding
from tracr.values import is_number, value_text

__all__ = ["ColumnRead", "Columns", "FeatureBasis"]

LARGEST_SHIFT = 2048.0  # float32 adds it exactly to the logits of BOS, which are multiples of 2**-12
NAMED = 3  # the most values that a label lists
TOO_LARGE = 2.0**128  # for a float32


@dataclass(frozen=True, eq=False)
class ColumnRead:
    """A column as a sum of factor * direction, plus the constant `shift`."""

    terms: tuple[tuple[int, float], ...]
    shift: float = 0.0


class Columns:
    """Columns, stored as rows; columns that are multiples of each other, up to constants, have the same shapes."""

    def __init__(self, rows: Array) -> None:
        count = len(rows)
        both = np.concatenate([rows, rows - rows[:, :1]])
        leading = both[np.arange(2 * count), (both != 0).argmax(axis=1), None]  # 0 only in rows of zeros
        flat, shapes = (leading == 0)[:, 0].tolist(), row_keys(both / np.where(leading == 0, 1.0, leading) + 0.0)
        self.rows, self.keys = rows, row_keys(rows)
        self.zero, self.constant = flat[:count], flat[count:]
        self.shapes, self.shifted = shapes[:count], shapes[count:]
        self.plain, self.units = _plain(rows)


@dataclass(eq=False)
class _Class:
    """Columns that are multiples of one column, up to constants; `shifts` says whether constants are allowed."""

    column: Array
    shifts: bool


class FeatureBasis:
    """The directions for a set of columns; `shifts` says for each column whether a constant is allowed."""

    def __init__(self, variable: Variable, columns: Columns, shifts: list[bool]) -> None:
        self.old, self.columns = variable, columns
        self.classes: list[_Class] = []
        self._known: dict[bytes, int] = {}
        seen: dict[tuple[bytes, bool], tuple[int, float, float]] = {}
        for number, same in enumerate(zip(columns.keys, shifts, strict=True)):
            if same not in seen:
                seen[same] = self._read(number, shifts=same[1])
        self._reads = [seen[same] for same in zip(columns.keys, shifts, strict=True)]

    def _read(self, number: int, *, shifts: bool) -> tuple[int, float, float]:
        """A column as a multiple of a known one, or as a new one: its class, the factor and the constant."""
        column = self.columns.rows[number]
        shift = float(column[0]) if shifts and self.columns.constant[number] else 0.0
        if self.columns.zero[number] or 0 < abs(shift) <= LARGEST_SHIFT:
            return -1, 0.0, shift
        keys = self.columns.shapes[number], self.columns.shifted[number]
        for key in keys if shifts else keys[:1]:
            place = self._known.get(key, -1)
            found = _multiple(column, self.classes[place].column, shifts=shifts) if place >= 0 else None
            if found is not None:
                self.classes[place].shifts &= shifts
                return place, *found
        for key in keys:
            self._known[key] = len(self.classes)
        self.classes.append(_Class(self.columns.plain[number], shifts))
        return len(self.classes) - 1, self.columns.units[number], 0.0

    @property
    def size(self) -> int:
        """How many directions there are."""
        return len(self.classes) - len(self._polynomials) + sum(self._powers)

    @property
    def _powers(self) -> list[bool]:
        """Whether polynomials read the number, and whether they read its square."""
        return [any(factors[power] for factors in self._polynomials.values()) for power in (1, 2)]

    def finish(self) -> tuple[list[ColumnRead], Variable, Array]:
        """Every column in terms of directions, the variable with these directions, and its table [values, directions].

        Columns that are polynomials of the number are read from it and its square, if that takes no more directions.
        """
        columns: list[Array] = []
        features: list[Number | Feature] = []
        named = self._polynomials
        terms: dict[int, ColumnRead] = {-1: ColumnRead(())}
        number, square = self._powers
        if number:
            columns.append(self._numbers())
            features.append(NUMBER)
        if square:
            columns.append(self._numbers() ** 2)
            features.append(Feature("^2"))
        for place, one in enumerate(self.classes):
            if place in named:
                constant, *factors = named[place]
                held = [feature is NUMBER for feature in features]
                uses = [(held.index(number), f) for number, f in zip((True, False), factors, strict=True) if f]
                terms[place] = ColumnRead(tuple(uses), constant)
            else:
                terms[place] = ColumnRead(((len(columns), 1.0),))
                features.append(Feature(self._name(one.column, len(columns))))
                columns.append(one.column)
        reads = []
        for place, factor, shift in self._reads:
            made = terms[place]
            reads.append(ColumnRead(tuple((at, factor * f) for at, f in made.terms), factor * made.shift + shift))
        table = np.stack(columns, axis=1) if columns else np.zeros((self.old.size, 0))
        return reads, self._variable(features, table), table

    def _numbers(self) -> Array:
        """The values that are numbers and that float32 can hold."""
        return np.array([float(value) for value in self.old.values if is_number(value) and abs(value) < TOO_LARGE])

    @cached_property
    def _polynomials(self) -> dict[int, tuple[float, float, float]]:
        """The classes that are c + bx + ax^2 for the number x, if x and x^2 take no more directions than the classes.

        All columns of a class must stay exact: integers, with constants that are small enough.
        """
        numbers = self._numbers()
        if len(numbers) < max(len(self.old.values), 2):
            return {}
        found: dict[int, tuple[float, float, float]] = {}
        fits = _polynomials([one.column for one in self.classes], numbers)
        for place, (one, fit) in enumerate(zip(self.classes, fits, strict=True)):
            if not one.shifts:
                fit = _monomial(one.column, numbers)
            reads = {read[1:] for read in self._reads if read[0] == place} if fit else ()
            if fit and all(_stays_exact(fit, numbers, *read) for read in reads):
                found[place] = fit
        needed = sum(any(fit[power] for fit in found.values()) for power in (1, 2))
        return found if needed <= len(found) else {}

    def _name(self, column: Array, place: int) -> str:
        """A label for a direction: the values of a flag, if they are few; else its number."""
        values = [value for value, hot in zip(self.old.values, column, strict=True) if hot]
        plain = all(isinstance(value, str | int | float | None) for value in values)
        if plain and len(values) <= NAMED and ((column == 0.0) | (column == 1.0)).all():
            return ":" + "|".join(value_text(value) for value in values if not isinstance(value, Number))
        return f":code{place + 1}"

    def _variable(self, features: list[Number | Feature], table: Array) -> Variable:
        """The variable with these features: a number, if that is the only feature."""
        if features == [NUMBER]:
            low, high = float(self._numbers().min()), float(self._numbers().max())
            return replace(self.old, encoding=Encoding.NUMERICAL, values=(NUMBER,), low=low, high=high)
        return replace(self.old, codebook=table, features=tuple(features))


def _polynomials(columns: list[Array], numbers: Array) -> list[tuple[float, float, float] | None]:
    """c, b and a, multiples of 1/1024, for each column that is c + bx + ax^2 of the numbers x: divided differences."""
    places = sorted({0, (len(numbers) - 1) // 2, len(numbers) - 1})
    x = numbers[places].tolist()
    if len(set(x)) < len(x):
        return [None] * len(columns)
    held = np.array(columns).reshape(-1, len(numbers))
    y = held[:, places].T
    slope = (y[1] - y[0]) / (x[1] - x[0])
    square = ((y[2] - y[1]) / (x[2] - x[1]) - slope) / (x[2] - x[0]) if len(x) > 2 else 0.0 * slope
    linear = slope - square * (x[0] + x[1])
    rounded = np.round(np.stack([y[0] - x[0] * (slope - square * x[1]), linear, square]) * 1024) / 1024
    constant, linear, square = rounded[:, :, None]
    fitting = (constant + linear * numbers + square * numbers**2 == held).all(axis=1)
    return [(c, b, a) if fits else None for (c, b, a), fits in zip(rounded.T.tolist(), fitting, strict=True)]


def _monomial(column: Array, numbers: Array) -> tuple[float, float, float] | None:
    """c, b and a, if a column is bx or ax^2."""
    for power in (1, 2):
        found = _multiple(column, numbers**power, shifts=False)
        if found:
            return (0.0, found[0], 0.0) if power == 1 else (0.0, 0.0, found[0])
    return None


def _stays_exact(fit: tuple[float, float, float], numbers: Array, factor: float, shift: float) -> bool:
    """Whether a multiple of a polynomial, plus a constant, can be summed in any order without rounding."""
    constant, linear, square = (factor * own for own in fit)
    constant += shift
    terms = np.array([[constant], [linear], [square]]) * (np.ones_like(numbers), numbers, numbers**2)
    if constant == 0.0 and (linear == 0.0 or square == 0.0):
        return _exact([linear, square], *terms)
    sizes = float(np.abs(terms).max(axis=1).sum())
    return sizes < 2**24 and abs(constant) <= LARGEST_SHIFT and bool((terms == np.round(terms)).all())


def _multiple(column: Array, own: Array, *, shifts: bool) -> tuple[float, float] | None:
    """The factor and the constant with which a direction gives the column, exactly in float32; `None` if impossible.

    The constant is 0 unless `shifts` are allowed.
    """
    place = int(np.abs(own).argmax())
    choices = [(float(column[place] / own[place]), 0.0)]
    if shifts:
        other = int(np.abs(own - own[place]).argmax())
        if own[other] != own[place]:
            factor = float((column[other] - column[place]) / (own[other] - own[place]))
            choices.append((factor, float(column[place] - factor * own[place])))
    for factor, shift in choices:
        if factor and abs(shift) <= LARGEST_SHIFT and (factor * own + shift == column).all():
            power = shift == 0.0 and abs(math.frexp(factor)[0]) == 0.5
            if power or _exact(column, own, factor * own, [factor, shift]):
                return factor, shift
    return None


def _plain(rows: Array) -> tuple[Array, list[float]]:
    """Every row divided by its smallest entry, and these entries, where the division is exact."""
    sizes = np.where(rows == 0, np.inf, np.abs(rows))
    units = rows[np.arange(len(rows)), sizes.argmin(axis=1), None]
    units = np.where(units == 0, 1.0, units)
    plain = rows / units
    exact = (plain * units == rows) & _held(rows) & _held(plain) & _held(units)
    same = exact.all(axis=1, keepdims=True)
    return np.where(same, plain, rows), np.where(same, units, 1.0)[:, 0].tolist()


def _exact(*parts: Array | list[float]) -> bool:
    return bool(_held(np.concatenate(parts)).all())


def _held(array: Array) -> NDArray[np.bool_]:
    """Where float32 holds the entries exactly."""
    return np.asarray(array.astype(np.float32) == array)
