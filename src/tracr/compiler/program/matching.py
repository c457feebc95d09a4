"""Finding a key by its number: selectors whose query is the number of the key, and always finds it.

The logits of the head are those of `craft/heads.py: number_logits`. A query may be off by a fraction of the distance
between two keys. A variable that is read only by such queries can therefore be computed with fewer neurons.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tracr.craft.numerics import dyadic_grid
from tracr.craft.variables import Array
from tracr.ir.domains import Finite
from tracr.ir.ops import Aggregation, IndicesOp, Linear, Lookup, Positions, TokensOp
from tracr.ir.program import Program, Tables
from tracr.ir.selectors import SelectorNode

__all__ = ["finds_by_number", "numbered_keys", "tolerances"]

STANDS = 1 / 16
"""The error allowed for a number that is only used to find keys, as a fraction of the distance between two keys."""


def numbered_keys(selected: NDArray[np.bool_], queries: Finite, keys: Finite) -> tuple[Array, float] | None:
    """A number for each key value, equal to the number of the queries that select it, and the grid of these numbers.

    `None` if this is impossible. Queries that select nothing are ignored: only selectors that always select are asked.
    """
    if not queries.numeric or queries.maybe_none:
        return None
    asking = selected.any(axis=1)
    numbers = queries.numbers[asking]
    if not len(numbers):
        return None

    def fit(given: Array) -> bool:
        return bool(((given[None, :] == numbers[:, None]) == selected[asking]).all())

    found = keys.numbers
    if not (keys.numeric and not keys.maybe_none and fit(found)):
        found = np.full(len(keys), numbers.max() + 1.0)
        rows, columns = np.nonzero(selected[asking])
        found[columns] = numbers[rows]
        if not fit(found):
            return None
    unit = dyadic_grid([*found.tolist(), *numbers.tolist()])
    return (found, unit) if unit else None


def finds_by_number(program: Tables, number: int) -> float:
    """The grid of the numbers of a selector's keys, if each query surely finds its key by number; else 0.

    The keys must be functions of tokens or positions, which hold no other values at PAD.
    """
    selector = program.selectors[number]
    if not isinstance(selector, SelectorNode) or not selector.always or not _embedded(program, selector.keys):
        return 0.0
    queries, keys = (program.sops[side].domain for side in (selector.queries, selector.keys))
    assert isinstance(queries, Finite) and isinstance(keys, Finite)
    found = numbered_keys(selector.table == 1, queries, keys)
    return found[1] if found else 0.0


def _embedded(program: Tables, number: int) -> bool:
    op = program.sops[number].op
    while isinstance(op, Lookup):
        op = program.sops[op.inner].op
    return isinstance(op, TokensOp | IndicesOp | Positions)


def tolerances(program: Program, sums: Mapping[int, Linear]) -> dict[int, float]:
    """The error allowed for each s-op that is read only by sums and by queries for keys by number; 0 for the others.

    `sums` has the s-ops that are computed as sums, though they are not written as sums.
    """
    least: dict[int, float] = dict.fromkeys(program.sops, np.inf)

    def allow(number: int, error: float) -> None:
        least[number] = min(least[number], error)

    for _, output in program.outputs:
        allow(output, 0.0)
    for node in reversed(program.sops.values()):
        match sums.get(node.id, node.op):
            case Linear(terms=terms):
                for number, factor in terms:
                    allow(number, least[node.id] / (abs(factor) * len(terms)) if factor else np.inf)
            case Aggregation(selector=selector, value=value):
                allow(value, 0.0)
                unit = finds_by_number(program, selector)
                for part in program.literals(selector):
                    allow(part.keys, 0.0)
                    allow(part.queries, STANDS * unit)
            case _:
                for number in program.children(node):
                    allow(number, 0.0)
    return least
