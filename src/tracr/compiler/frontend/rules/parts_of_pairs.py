"""Splits comparisons of pairs: `x + i / n < ...` becomes `x < ...`, or `x == ...` and `i < ...`.

Programs make keys unique by adding a fraction of the position. As one s-op, such keys have one value for each pair, and
a table over them has the square of that. But a comparison of pairs (x, i) with (y, j) is a table of blocks, one for
each x and y. If there are few different blocks, the comparison is a combination of selectors over the parts: for each
block, one selector says that x and y lead to it, and one says that it selects i and j.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.frontend.rules.counts import Table
from tracr.compiler.frontend.rules.facts import distinct_codes
from tracr.compiler.frontend.rules.state import Inference
from tracr.compiler.frontend.rules.tabulate import column_of
from tracr.ir.domains import Codes, Finite
from tracr.ir.ops import Linear, PairLookup
from tracr.rasp.functions import OPERATORS, Comparison
from tracr.runtime.prepared_tables import snap

__all__ = ["SPLIT_CELLS", "PairBlock", "split_comparison"]

SPLIT_CELLS = 2**16  # tables with more cells are split, if possible
MOST_BLOCKS = 4
ORDERS = (operator.lt, operator.le, operator.gt, operator.ge)


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Selected if the outer parts of key and query are in `outer` and their inner parts in `inner` (`None`: any)."""

    outer: tuple[int, int, Table]  # keys, queries, table
    inner: tuple[int, int, Table] | None


@dataclass(frozen=True, eq=False)
class _Pairs:
    """An s-op as an injective function of two: `codes[first code, second code]`."""

    first: int
    second: int
    codes: Codes

    def swapped(self) -> _Pairs:
        return _Pairs(self.second, self.first, self.codes.T)


def split_comparison(inference: Inference, predicate: object, keys: int, queries: int) -> list[PairBlock] | None:
    """The blocks of a built-in comparison of two s-ops made of pairs, if it is large and its blocks are few."""
    ours, theirs = inference.sops[keys].domain, inference.sops[queries].domain
    assert isinstance(ours, Finite) and isinstance(theirs, Finite)
    if not isinstance(predicate, Comparison) or len(ours) * len(theirs) <= SPLIT_CELLS:
        return None
    if predicate.value not in OPERATORS or ours.maybe_none or theirs.maybe_none:
        return None
    compare, columns = OPERATORS[predicate.value], (column_of(ours), column_of(theirs))
    key, query = _pairs(inference, keys), _pairs(inference, queries)
    if key is None or query is None:
        return None
    for first, second in ((key, query), (key.swapped(), query.swapped())):
        try:
            found = _blocks(compare, columns[0][first.codes], columns[1][second.codes])
        except TypeError:  # values that cannot be compared: tabulating reports which
            return None
        if found is not None:
            outer, inner = (first.first, second.first), (first.second, second.second)
            return [
                PairBlock((*outer, where), None if block.all() else (*inner, block.astype(np.int8)))
                for where, block in found
            ]
    return None


def _pairs(inference: Inference, number: int) -> _Pairs | None:
    node = inference.sops[number]
    assert isinstance(node.domain, Finite)
    match node.op:
        case PairLookup(fst=fst, snd=snd, table=table):
            codes = table
        case Linear(terms=((fst, first), (snd, second)), constant=constant):
            domains = inference.sops[fst].domain, inference.sops[snd].domain
            if any(not isinstance(domain, Finite) or domain.maybe_none for domain in domains):
                return None
            x, y = (domain.numbers for domain in domains if isinstance(domain, Finite))
            codes = snap(node.domain, first * x[:, None] + second * y[None, :] + constant)
        case _:
            return None
    complete = codes.min(initial=0) >= 0 and len(distinct_codes(codes, len(node.domain))) == codes.size
    return _Pairs(fst, snd, codes) if complete and fst != snd else None


def _blocks(
    compare: Callable[[Any, Any], Any], keys: NDArray[Any], queries: NDArray[Any]
) -> list[tuple[Table, NDArray[np.bool_]]] | None:
    """Each block that occurs, except empty ones, with the (outer query, outer key) cells that have it."""
    shape = queries.shape[1], keys.shape[1]
    kinds = {bytes([value]) * math.prod(shape): value for value in (0, 1)}
    kind_of = _uniform(compare, keys, queries)
    for q, k in np.argwhere(kind_of < 0).tolist():
        block = np.asarray(compare(keys[k][None, :], queries[q][:, None]), dtype=bool)
        kind_of[q, k] = kinds.setdefault(block.tobytes(), len(kinds))
        if len(kinds) > MOST_BLOCKS + 2:
            return None
    occurring, first = np.unique(kind_of, return_index=True)
    if len(occurring) > MOST_BLOCKS:
        return None
    blocks = [np.frombuffer(held, dtype=bool).reshape(shape) for held in kinds]
    in_order = occurring[np.argsort(first)].tolist()
    return [((kind_of == kind).astype(np.int8), blocks[kind]) for kind in in_order if blocks[kind].any()]


def _uniform(compare: Callable[[Any, Any], Any], keys: NDArray[Any], queries: NDArray[Any]) -> NDArray[np.int8]:
    """For each block 0 or 1 if all its cells are that, else -1. For an order, comparing extreme values is enough."""
    known = np.full((len(queries), len(keys)), -1, dtype=np.int8)
    if compare in ORDERS and object not in (keys.dtype, queries.dtype):
        low, high = (
            compare(key[None, :], query[:, None])
            for key, query in ((keys.min(axis=1), queries.max(axis=1)), (keys.max(axis=1), queries.min(axis=1)))
        )
        known[low == high] = low[low == high]
    return known
