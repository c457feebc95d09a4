"""The tables of a program in the fastest form for the vectorised interpreter, each computed once.

The codes of missing values (PAD, errors) are negative, and numpy allows negative indices: a table that ends with cells
for them needs no special case.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tracr.ir.domains import Codes, Finite
from tracr.ir.ops import (
    ERROR,
    UNREACHED,
    Aggregation,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    PairLookup,
    Positions,
    SumLookup,
    TokensOp,
)
from tracr.ir.program import InferredNode, Tables
from tracr.ir.selectors import SelectorNode
from tracr.nearness import nearly_equal
from tracr.rational import fraction_of
from tracr.values import is_number

__all__ = ["Floats", "Prepared", "prepared", "snap"]

Floats = NDArray[np.float64]
MEAN_CELLS = 1_000_000
LARGEST_SCALE = 2**20


class Prepared:
    """The prepared tables of a program, each computed at its first use."""

    def __init__(self, program: Tables) -> None:
        self.program = program
        self._tables: dict[int, Codes] = {}
        self._matrices: dict[int, Floats] = {}
        self._chosen: dict[int, NDArray[np.bool_]] = {}
        self._moved: dict[int, tuple[Floats, NDArray[np.bool_]]] = {}
        self._means: dict[int, MeanTable | None] = {}
        self._numbers: dict[int, Floats] = {}

    @cached_property
    def may_fail(self) -> frozenset[int]:
        """The s-ops whose code may be negative although their inputs' codes are not; these results must be checked."""
        return frozenset(number for number, node in self.program.sops.items() if _may_fail(node))

    @cached_property
    def silent_at_pad(self) -> frozenset[int]:
        """The s-ops whose code is -1 at every position without a token; for others such positions are removed first."""
        found: set[int] = set()
        for number, node in self.program.sops.items():
            match node.op:
                case TokensOp():
                    found.add(number)
                case Lookup() | PairLookup():
                    if found.intersection(node.inputs):
                        found.add(number)
                case Linear(terms=terms) | SumLookup(terms=terms):
                    if isinstance(node.domain, Finite) and any(term in found for term, _ in terms):
                        found.add(number)
        return frozenset(found)

    def table(self, node: InferredNode, op: Lookup | PairLookup) -> Codes:
        """The table, flat, with two more cells on each side for negative codes, which give errors."""
        if node.id not in self._tables:
            self._tables[node.id] = _extended(op.table, 2, ERROR).ravel()
        return self._tables[node.id]

    def matrix(self, selector: SelectorNode) -> Floats:
        """The selector's table [key, query]: 1 if selected; the first row, for missing keys, is zero."""
        if selector.id not in self._matrices:
            queries, keys = selector.table.shape
            matrix = np.zeros((keys + 1, queries))
            matrix[1:] = (selector.table == 1).T
            self._matrices[selector.id] = matrix
        return self._matrices[selector.id]

    def chosen(self, selector: SelectorNode) -> NDArray[np.bool_]:
        """The selector's table [query, key], flat, with a column and a row for missing values, never selected."""
        if selector.id not in self._chosen:
            self._chosen[selector.id] = _extended(selector.table == 1, 1, False).ravel()
        return self._chosen[selector.id]

    def moved(self, node: InferredNode, op: Aggregation) -> tuple[Floats, NDArray[np.bool_]]:
        """For each code of the aggregated value: the code of the result, and whether the value is a number."""
        if node.id not in self._moved:
            source = self.program.sops[op.value].domain
            assert isinstance(source, Finite) and isinstance(node.domain, Finite)
            target = node.domain.index
            codes = np.array([*(target[value] for value in source.values), 0.0])
            self._moved[node.id] = codes, np.array([*(is_number(value) for value in source.values), False])
        return self._moved[node.id]

    def widths(self, node: InferredNode) -> Codes:
        """The code of each possible number of selected keys."""
        if node.id not in self._tables:
            assert isinstance(node.domain, Finite)
            self._tables[node.id] = snap(node.domain, np.arange(self.program.lengths[1] + 1, dtype=np.float64))
        return self._tables[node.id]

    def numbers(self, number: int) -> Floats:
        """The value of each code; NaN for `None`, 0 for a missing value."""
        if number not in self._numbers:
            domain = self.program.sops[number].domain
            assert isinstance(domain, Finite)
            table = np.append(domain.numbers, 0.0)
            if domain.maybe_none:
                table[domain.index[None]] = np.nan
            self._numbers[number] = table
        return self._numbers[number]

    def means(self, node: InferredNode, op: Aggregation) -> MeanTable | None:
        """The code of every mean by (number of keys, sum), if the values are multiples of one number."""
        if node.id not in self._means:
            self._means[node.id] = _mean_table(self.program, node, op)
        return self._means[node.id]


_PREPARED: WeakKeyDictionary[Tables, Prepared] = WeakKeyDictionary()


def prepared(program: Tables) -> Prepared:
    """The prepared tables of a program."""
    found = _PREPARED.get(program)
    if found is None:
        found = _PREPARED[program] = Prepared(program)
    return found


def _extended(table: NDArray[Any], cells: int, fill: int) -> NDArray[Any]:
    """A table with this many more cells at the end of each axis."""
    found = np.full([size + cells for size in table.shape], fill, dtype=table.dtype)
    found[tuple(slice(size) for size in table.shape)] = table
    return found


def _may_fail(node: InferredNode) -> bool:
    match node.op:
        case TokensOp() | IndicesOp() | LengthOp() | Constant():
            return False
        case Lookup(table=table) | PairLookup(table=table) | Positions(table=table):
            return bool(table.min(initial=0) < 0)
        case _:  # checking is safe for any operation
            return isinstance(node.domain, Finite)


def snap(domain: Finite, numbers: Floats) -> Codes:
    """The code of the nearest value for each number (NaN is `None`); UNREACHED if the number is not that value."""
    ordered, middles = domain.ascending
    place = np.searchsorted(middles, numbers)  # NaN sorts last
    codes = np.append(ordered, ERROR)[np.minimum(place, max(len(ordered) - 1, 0))].astype(np.int32)
    wrong = ~nearly_equal(numbers, domain.numbers[codes])
    if wrong.any():
        codes = np.where(wrong, UNREACHED, codes)
    missing = np.isnan(numbers)
    return np.where(missing, domain.index.get(None, ERROR), codes) if missing.any() else codes


class MeanTable:
    """`codes[count * width + sum of units]`: value i is (offset + units[i]) / scale, and -1 counts for nothing."""

    def __init__(self, units: Floats, codes: Codes, width: int) -> None:
        self.units, self.codes, self.width = units, codes, width


def _mean_table(program: Tables, node: InferredNode, op: Aggregation) -> MeanTable | None:
    source, longest = program.sops[op.value].domain, program.lengths[1]
    if not (isinstance(node.domain, Finite) and isinstance(source, Finite) and source.numeric):
        return None
    if source.maybe_none or not (op.default is None or is_number(op.default)):
        return None
    fractions = [fraction_of(number) for number in source.numbers.tolist()]
    scale = math.lcm(*(min(f.denominator, 2 * LARGEST_SCALE) for f in fractions))
    if scale > LARGEST_SCALE:
        return None
    multiples = [fraction.numerator * (scale // fraction.denominator) for fraction in fractions]
    lowest = min(multiples)
    units = [multiple - lowest for multiple in multiples]
    width = max(units) * longest + 1
    if width * (longest + 1) > MEAN_CELLS:
        return None
    counts = np.arange(longest + 1)[:, None]
    sums = (np.arange(width) + counts * lowest) / scale
    means = sums / np.maximum(counts, 1)
    means[0] = np.nan if op.default is None else float(op.default)
    return MeanTable(np.array([*units, 0.0]), snap(node.domain, means).ravel(), width)
