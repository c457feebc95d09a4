"""The Python functions of a program as tables over the values that occur, found by the compiler's own inference."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import trace
from tracr.errors import ExpressionError, TracrWarning
from tracr.ir.domains import Finite
from tracr.ir.inferred import Inferred
from tracr.ir.ops import ERROR, Lookup, PairLookup
from tracr.ir.options import Options, as_vocabulary
from tracr.ir.selectors import SelectorNode
from tracr.rasp.expressions import Map, RASPExpr, Selector, SelectorWidth, SequenceMap, SOp
from tracr.rasp.functions import Comparison
from tracr.values import Value

__all__ = ["Chosen", "Tables", "tables_of"]

COMPARISONS = [comparison for comparison in Comparison if comparison not in (Comparison.TRUE, Comparison.FALSE)]


@dataclass(frozen=True)
class Chosen:
    """Which keys each query selects."""

    keys: tuple[Value, ...]
    queries: tuple[Value, ...]
    table: NDArray[np.int8]

    def columns(self) -> dict[Value, tuple[Value, ...]]:
        """For each key the queries that select it."""
        return {
            key: tuple(query for q, query in enumerate(self.queries) if self.table[q, k] == 1)
            for k, key in enumerate(self.keys)
        }

    def comparison(self) -> Comparison | None:
        """The comparison that selects the same, if there is one."""
        for comparison in COMPARISONS:
            try:
                cells = [[comparison(key, query) for key in self.keys] for query in self.queries]
            except (TypeError, ValueError):
                continue
            if (np.array(cells) == (self.table == 1)).all():
                return comparison
        return None


@dataclass(frozen=True)
class Tables:
    """The functions of a program as tables, and the selectors that always select something."""

    maps: dict[RASPExpr, list[tuple[Value, Value]]]
    pairs: dict[RASPExpr, dict[Value, dict[Value, Value]]]
    selectors: dict[RASPExpr, Chosen]
    never_empty: frozenset[RASPExpr]

    def always(self, selector: RASPExpr) -> bool:
        """Whether every query selects something."""
        return selector in self.never_empty


def tables_of(expr: RASPExpr, vocab: Sequence[Value], max_seq_len: int) -> Tables:
    """Tabulate everything in a program for inputs of a vocabulary up to a length."""
    output = SelectorWidth(expr) if isinstance(expr, Selector) else expr
    assert isinstance(output, SOp)
    traced = trace({"output": output})
    options = Options(as_vocabulary(vocab), max_seq_len, bos=object(), pad=object())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracrWarning)
        program = infer(traced, options)
    tables = Tables({}, {}, {}, frozenset(n.expr for n in traced.nodes if _never_empty(program, n.id)))
    for node in traced.nodes:
        if isinstance(node.expr, Map):
            _add_map(tables, program, node.id, node.expr)
        elif isinstance(node.expr, SequenceMap):
            _add_pairs(tables, program, node.id, node.expr)
        elif isinstance(selector := program.selectors.get(node.id), SelectorNode):
            keys, queries = (_values(program, number) for number in (selector.keys, selector.queries))
            tables.selectors[node.expr] = Chosen(keys, queries, selector.table)
    return tables


def _never_empty(program: Inferred, number: int) -> bool:
    return number in program.selectors and program.selectors[number].always


def _values(program: Inferred, number: int) -> tuple[Value, ...]:
    domain = program.sops[number].domain
    return domain.values if isinstance(domain, Finite) else ()


def _add_map(tables: Tables, program: Inferred, number: int, expr: Map) -> None:
    """Add the table of a function. Values on which it raises get no entry, so the dictionary raises there too."""
    op = program.sops[number].op
    if isinstance(op, Lookup):
        keys, values = _values(program, op.inner), _values(program, number)
        tables.maps[expr] = [(key, values[code]) for key, code in zip(keys, op.table, strict=True) if code >= 0]


def _add_pairs(tables: Tables, program: Inferred, number: int, expr: SequenceMap) -> None:
    op = program.sops[number].op
    if not isinstance(op, PairLookup):
        return
    first, second, values = _values(program, op.fst), _values(program, op.snd), _values(program, number)
    if (op.table == ERROR).any():
        x, y = (int(place[0]) for place in (op.table == ERROR).nonzero())
        raise ExpressionError(
            f"raises on {first[x]!r}, {second[y]!r}, but a table in the textual language needs a value for every pair",
            expression=expr,
            hint="return a value there",
        )
    filler = values[int(op.table[op.table >= 0][0])]
    tables.pairs[expr] = {
        x: {y: values[code] if code >= 0 else filler for y, code in zip(second, row, strict=True)}
        for x, row in zip(first, op.table.tolist(), strict=True)
    }
