"""Embedding what is read: tokens and positions need no direction for each value if they are read in few ways.

The embedding writes a one-hot code x, and readers read x @ C for the columns C of their matrices. It may as well write
x @ C itself. Columns are taken as they are, so nothing is rounded that was not before: equal ones up to a factor are
one direction, and, where all that is read is exact, up to a constant that is a bias then; polynomials of a number are
read from it and its square. If that makes fewer directions than values, the variable is stored that way; its code is a
row of what was read (`Variable.codebook`).

A function of tokens, or of positions, alone that was read through their matrices (`fold.py`) is embedded as the
variable it is, where that takes no more directions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracr.craft.grouping import group_rows, row_keys
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import NUMBER, Array, Feature, Number, Variable
from tracr.ir.circuit import Circuit, Component, Embedded
from tracr.ir.domains import Finite
from tracr.rasp.annotations import Encoding
from tracr.values import is_number, value_text

__all__ = ["embed_functions", "factor", "factored_kinds"]

Kind = Literal["token", "position"]
LARGEST_SHIFT = 2048.0  # next to the logits of BOS, which are multiples of 2**-12, float32 holds this exactly
KNOWN = 1e-9  # how far off what a folded variable is said to be made of may be
NAMED = 3  # values that a label lists
TOO_LARGE = 2.0**128  # for a float32


def embed_functions(circuit: Circuit, kinds: Set[Kind]) -> Circuit:
    """The circuit with linear functions of one embedded variable embedded themselves."""
    sources = {source.variable: source for source in circuit.embedded if not source.variable.compact}
    kept: list[Component] = []
    embedded = list(circuit.embedded)
    for component in circuit.components:
        source = _function(component, sources)
        node = None if source is None or source.variable.node is None else circuit.program.sops[source.variable.node]
        if source is not None and node is not None and isinstance(node.domain, Finite) and _kind(source) in kinds:
            sources[source.variable] = source
            embedded.append(source)
        else:
            kept.append(component)
    gone = {source.variable for source in embedded}
    variables = tuple(variable for variable in circuit.variables if variable not in gone)
    return replace(circuit, components=tuple(kept), embedded=tuple(embedded), variables=variables)


def factored_kinds(before: Circuit, after: Circuit) -> list[set[Kind]]:
    """Of what kinds functions might be embedded for nothing: of which there are some, and variables were factored."""
    left = {source.variable for source in after.embedded}
    factored = {_kind(source) for source in before.embedded if source.variable not in left}
    functions = embed_functions(before, factored).embedded[len(before.embedded) :] if factored else ()
    kinds = {_kind(source) for source in functions}
    return [kinds, *([{kind} for kind in sorted(kinds)] if len(kinds) > 1 else [])] if kinds else []


def _kind(source: Embedded) -> Kind:
    return "token" if source.by_token is not None else "position"


def _function(component: Component, sources: dict[Variable, Embedded]) -> Embedded | None:
    """What the embedding has to write in place of an MLP, if that is a function of one embedded variable."""
    match component:
        case MLP(linear=LinearMap(blocks=blocks), writes=((variable, _),)) if len(blocks) == 1:
            ((read, block),) = blocks.items()
            if read in sources:
                tables = (sources[read].by_token, sources[read].by_position)
                by_token, by_position = (None if table is None else table @ block for table in tables)
                return Embedded(variable, by_token, by_position)
    return None


@dataclass(frozen=True, eq=False)
class _Read:
    """A column in terms of directions, and a constant: sum of factor * direction, plus `shift`."""

    terms: tuple[tuple[int, float], ...]
    shift: float = 0.0


@np.errstate(over="ignore", invalid="ignore")
def factor(circuit: Circuit) -> Circuit:
    """The circuit with embedded variables stored as they are read, where that takes fewer directions.

    A quotient of columns that is too large for a float is infinite; multiplied again, it does not give the column.
    """
    outputs = {variable for _, variable in circuit.outputs}
    for source in circuit.embedded:
        variable = source.variable
        if not (variable.numerical or variable.compact or variable in outputs):
            circuit = _factored(circuit, source)
    return circuit


def _factored(circuit: Circuit, source: Embedded) -> Circuit:
    old = source.variable
    maps = dict.fromkeys((linear, biased) for linear, biased in _maps(circuit) if old in linear.blocks)
    if not maps:
        return circuit
    codes = source.by_token if source.by_token is not None else source.by_position
    assert codes is not None
    different = {linear: group_rows(linear.blocks[old].T) for linear, _ in maps}
    columns = _Columns(np.concatenate([linear.blocks[old].T[different[linear][0]] for linear, _ in maps]))
    shifting = [biased and _is_exact(linear) for linear, biased in maps for _ in different[linear][0]]
    if not (codes.sum(axis=1) == 1).all():  # no value for some token, or position
        shifting = [False] * len(shifting)
    used = int(np.count_nonzero(columns.rows.any(axis=0)))
    present = {ONE: 1.0, BOS: -1.0, **({PAD: -1.0} if source.by_token is not None else {})}
    unread = [one for one in (BOS, PAD) if one in present and circuit.read is not None and one not in circuit.read]
    for shifts in (shifting, [False] * len(shifting)) if any(shifting) else (shifting,):
        basis = _Basis(old, columns, shifts)
        if len(basis.classes) > used:
            return circuit
        if basis.size < used:
            reads, new, table = basis.finish()
            if new.size + (len(unread) if any(read.shift for read in reads) else 0) < used:
                break
    else:
        return circuit
    places = iter(reads)
    found = {linear: [next(places) for _ in different[linear][0]] for linear, _ in maps}

    def through(linear: LinearMap) -> LinearMap:
        if linear not in found:
            return linear
        block, shifts = np.zeros((new.size, len(found[linear]))), np.zeros((1, len(found[linear])))
        for column, read in enumerate(found[linear]):
            shifts[0, column] = read.shift
            for place, factor in read.terms:
                block[place, column] = factor
        block, shifts = (part[:, different[linear][1]] for part in (block, shifts))
        left = {variable: own for variable, own in linear.blocks.items() if variable is not old}
        bias = {one: sign * shifts for one, sign in present.items()} if shifts.any() else {}
        blocks = {**left, new: block} if block.any() else left
        return LinearMap(blocks, linear.width, linear.through) + LinearMap(bias, linear.width)

    by_token, by_position = (None if rows is None else rows @ table for rows in (source.by_token, source.by_position))
    replaced = [Embedded(new, by_token, by_position)] if new.size else []
    embedded = tuple(one for other in circuit.embedded for one in (replaced if other is source else [other]))
    components = tuple(part.with_maps([through(linear) for linear in part.maps]) for part in circuit.components)
    folded = {
        variable: through(linear) if linear in found else _in_terms_of(linear, old, new, table, present)
        for variable, linear in circuit.folded.items()
    }
    read = None
    if circuit.read is not None:
        read = {variable: rows for variable, rows in circuit.read.items() if variable is not old}
        read[new] = np.ones(new.size, dtype=bool)
        for special in {special for part in components for special in (BOS, PAD) if special in part.reads}:
            read[special] = np.ones(1, dtype=bool)
    return replace(circuit, embedded=embedded, components=components, folded=folded, read=read)


def _is_exact(linear: LinearMap) -> bool:
    return all(read.noise.error == read.noise.cold == 0.0 for read in linear.blocks)


def _in_terms_of(
    linear: LinearMap, old: Variable, new: Variable, table: Array, present: Mapping[Variable, float]
) -> LinearMap:
    """What a folded variable is made of, as far as it can be told from what is left."""
    if old not in linear.blocks:
        return linear
    wanted = linear.blocks[old]
    terms = np.hstack([table, np.ones((old.size, 1))])
    factors: Array = np.asarray(np.linalg.lstsq(terms, wanted, rcond=None)[0], dtype=np.float64)
    known = np.abs(terms @ factors - wanted).max(axis=0, initial=0.0) < KNOWN
    blocks = {variable: block for variable, block in linear.blocks.items() if variable is not old}
    rest = {} if known.all() else {old: np.where(known, 0.0, wanted)}
    left = LinearMap({**blocks, **rest}, linear.width, linear.through)
    factors = np.where(known, factors, 0.0)
    constant = {one: sign * factors[-1:] for one, sign in present.items()}
    return left + LinearMap({**({new: factors[:-1]} if new.size else {}), **constant}, linear.width)


def _maps(circuit: Circuit) -> Iterator[tuple[LinearMap, bool]]:
    """Everything that is read through, and whether it can have a bias: the unembedding has none."""
    for component in circuit.components:
        for linear in component.maps:
            yield linear, True
    for _, variable in circuit.outputs:
        if variable in circuit.folded:
            yield circuit.folded[variable], False


class _Columns:
    """Columns, each a row here: those that are multiples of each other, up to constants, have the same shapes."""

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
    """Columns that are multiples of one, up to constants; `shifts` if all may have one."""

    column: Array
    shifts: bool


class _Basis:
    """The directions that columns are made of; `shifts` says of each whether it may have a constant."""

    def __init__(self, variable: Variable, columns: _Columns, shifts: list[bool]) -> None:
        self.old, self.columns = variable, columns
        self.classes: list[_Class] = []
        self._known: dict[bytes, int] = {}
        seen: dict[tuple[bytes, bool], tuple[int, float, float]] = {}
        for number, same in enumerate(zip(columns.keys, shifts, strict=True)):
            if same not in seen:
                seen[same] = self._read(number, shifts=same[1])
        self._reads = [seen[same] for same in zip(columns.keys, shifts, strict=True)]

    def _read(self, number: int, *, shifts: bool) -> tuple[int, float, float]:
        """A column as a multiple of one that is known, or as a new one: a class, a factor and a constant."""
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

    def finish(self) -> tuple[list[_Read], Variable, Array]:
        """Every column in terms of directions, the variable that has these, and its table [values, directions].

        Columns that are polynomials of the number are read from it and its square, if that is not more directions.
        """
        columns: list[Array] = []
        features: list[Number | Feature] = []
        named = self._polynomials
        terms: dict[int, _Read] = {-1: _Read(())}
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
                terms[place] = _Read(tuple(uses), constant)
            else:
                terms[place] = _Read(((len(columns), 1.0),))
                features.append(Feature(self._name(one.column, len(columns))))
                columns.append(one.column)
        reads = []
        for place, factor, shift in self._reads:
            made = terms[place]
            reads.append(_Read(tuple((at, factor * f) for at, f in made.terms), factor * made.shift + shift))
        table = np.stack(columns, axis=1) if columns else np.zeros((self.old.size, 0))
        return reads, self._variable(features, table), table

    def _numbers(self) -> Array:
        """The values that are numbers and that float32 can hold."""
        return np.array([float(value) for value in self.old.values if is_number(value) and abs(value) < TOO_LARGE])

    @cached_property
    def _polynomials(self) -> dict[int, tuple[float, float, float]]:
        """The classes that are c + bx + ax^2 for the number x, if x and x^2 are no more directions than they.

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
        """The values of a flag, if they are few; else just which direction it is."""
        values = [value for value, hot in zip(self.old.values, column, strict=True) if hot]
        plain = all(isinstance(value, str | int | float | None) for value in values)
        if plain and len(values) <= NAMED and ((column == 0.0) | (column == 1.0)).all():
            return ":" + "|".join(value_text(value) for value in values if not isinstance(value, Number))
        return f":code{place + 1}"

    def _variable(self, features: list[Number | Feature], table: Array) -> Variable:
        """The variable stored this way: a number if that is all."""
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
    """The same, if a column is bx or ax^2."""
    for power in (1, 2):
        found = _multiple(column, numbers**power, shifts=False)
        if found:
            return (0.0, found[0], 0.0) if power == 1 else (0.0, 0.0, found[0])
    return None


def _stays_exact(fit: tuple[float, float, float], numbers: Array, factor: float, shift: float) -> bool:
    """Whether a multiple of a polynomial, plus a constant, is added up without rounding in any order."""
    constant, linear, square = (factor * own for own in fit)
    constant += shift
    terms = np.array([[constant], [linear], [square]]) * (np.ones_like(numbers), numbers, numbers**2)
    if constant == 0.0 and (linear == 0.0 or square == 0.0):
        return _exact([linear, square], *terms)
    sizes = float(np.abs(terms).max(axis=1).sum())
    return sizes < 2**24 and abs(constant) <= LARGEST_SHIFT and bool((terms == np.round(terms)).all())


def _multiple(column: Array, own: Array, *, shifts: bool) -> tuple[float, float] | None:
    """The factor and the constant that make a direction the column, exactly in float32 too; `None` if there are none.

    A constant only where `shifts` are allowed.
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
    """Every row in terms of its smallest entry, and that, if nothing is rounded by it."""
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
    """Where float32 rounds nothing."""
    return np.asarray(array.astype(np.float32) == array)
