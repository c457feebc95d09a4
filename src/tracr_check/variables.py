"""Variables of the program: their values and codes, the ways to compute them, and selectors.

A *variable* is a number (an s-op of the program, or a definition that the certificate adds) or a name: "T" the token,
"I" the position, "L" the length of the input, and parts of heads ("c0.1"). A *way* computes the codes of a variable
from those of other variables at the same position. Codes are places in the list of a variable's values; a negative code
means that the program is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ERROR",
    "UNREACHED",
    "Array",
    "Codes",
    "Env",
    "SOp",
    "Selector",
    "Sides",
    "Truth",
    "Var",
    "Way",
    "different_rows",
    "is_number",
    "snap",
]

Var = int | str
Codes = NDArray[np.int64]
Array = NDArray[np.float64]
Truth = NDArray[np.bool_]
Sides = tuple[frozenset[int], frozenset[int]]  # of queries, of keys
ERROR, UNREACHED = -1, -2
NEAR = 1.05e-9  # of a value; a little more than 1e-9, so that rounding here makes no input undefined


@dataclass
class Env:
    """Joint values: the codes of some variables, row by row. All are functions of the `free` ones."""

    rows: int
    codes: dict[Var, Codes]
    free: tuple[Var, ...] = ()

    def at(self, rows: Any) -> Env:
        """Some rows: a mask, a range or their numbers."""
        codes = {name: codes[rows] for name, codes in self.codes.items()}
        kept = range(self.rows) if isinstance(rows, slice) else np.arange(self.rows)
        return Env(len(kept[rows]), codes, self.free)

    def where(self, conditions: Iterable[Truth]) -> Env:
        """The rows on which all conditions hold."""
        kept = np.ones(self.rows, dtype=bool)
        for condition in conditions:
            kept &= condition
        return self if kept.all() else self.at(kept)

    def different(self, names: Iterable[Var]) -> Env:
        """The different joint values of some variables."""
        ordered = tuple(sorted(names, key=str))
        if not ordered:
            return Env(1, {})
        stacked, _ = different_rows([self.codes[name] for name in ordered])
        return Env(len(stacked[0]), dict(zip(ordered, stacked, strict=True)), ordered)


@dataclass(frozen=True, eq=False)
class Way:
    """Computes a variable from the codes of others. The function gets their codes, none of them negative."""

    of: tuple[Var, ...]
    function: Callable[..., Codes]


@dataclass(frozen=True, eq=False)
class SOp:
    """An s-op or a definition: its operation and its values. `cell_radius`: of cells of an interval (`cells.py`)."""

    number: int
    label: str
    op: Mapping[str, Any]
    values: tuple[Any, ...]
    table: Codes | None = None
    categorical: bool = True
    cell_radius: Array | None = None

    @cached_property
    def numbers(self) -> Array:
        """The number of each value; NaN for values that are not numbers."""
        return np.array([float(value) if is_number(value) else math.nan for value in self.values])

    @cached_property
    def index(self) -> Mapping[Any, int]:
        """The code of each value. Values that are equal are one value: `True` and 1, (True,) and (1,)."""
        return {value: code for code, value in enumerate(self.values)}

    @property
    def kind(self) -> str:
        """The name of its operation."""
        return str(self.op["kind"])

    @property
    def listed(self) -> bool:
        """Whether its values are listed, not cells of an interval."""
        return self.cell_radius is None

    @property
    def radius(self) -> Array:
        """How far the s-op's number can be from that of its value; 0 if the values are listed."""
        return np.zeros(len(self.values)) if self.cell_radius is None else self.cell_radius


@dataclass(frozen=True, eq=False)
class Selector:
    """A table [query, key] over the codes of two s-ops, or ("and", "or", "not") a combination of selectors."""

    number: int
    label: str
    kind: str
    parts: tuple[int, ...]
    keys: int = -1
    queries: int = -1
    table: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), np.int8))

    @cached_property
    def sides(self) -> Sides:
        """The s-ops that matter for queries, and for keys: a table with equal rows does not depend on the query."""
        queries = frozenset({self.queries} if (self.table != self.table[:1]).any() else ())
        return queries, frozenset({self.keys} if (self.table != self.table[:, :1]).any() else ())

    @cached_property
    def one_per_row(self) -> bool:
        """Whether a table allows each query value at most one key value."""
        return bool(((self.table == 1).sum(1) <= 1).all())


def different_rows(columns: Sequence[Codes]) -> tuple[Sequence[Codes], Codes]:
    """The different rows of columns of codes, sorted, column by column; and the place of each row among them.

    Rows are numbered, if 62 bits are enough: numbers are sorted much faster than rows.
    """
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(sizes) >= 2**62:
        stacked, places = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return list(stacked), places.reshape(-1)
    rows, places = np.unique(np.ravel_multi_index(tuple(columns), sizes), return_inverse=True)
    return np.unravel_index(rows, sizes), places


def is_number(value: Any) -> bool:
    """Whether a value counts as a number."""
    return isinstance(value, int | float) and math.isfinite(value)


def snap(sop: SOp, numbers: Array) -> Codes:
    """The codes of numbers (NaN: of `None`): the nearest value, if it is near and within its radius; else unreached."""
    known = np.flatnonzero(np.isfinite(sop.numbers))
    none = sop.index.get(None, ERROR)
    if not len(known):
        return np.where(np.isnan(numbers), none, UNREACHED)
    ordered, first = np.unique(sop.numbers[known], return_index=True)
    order = known[first]
    nearest = order[np.searchsorted(ordered[1:] / 2 + ordered[:-1] / 2, np.nan_to_num(numbers))]
    off = np.abs(sop.numbers[nearest] - numbers) > sop.radius[nearest] + NEAR * np.maximum(1.0, np.abs(numbers))
    return np.where(np.isnan(numbers), none, np.where(off, UNREACHED, nearest))
