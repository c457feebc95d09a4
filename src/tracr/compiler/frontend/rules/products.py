"""Merges two selectors into one table, over the same s-ops or over a product space.

The product space is the paper's refactoring: keys (k1, k2) and queries (q1, q2) are pairs, computed by the MLP before
the head. It is used if the heads of a combination (`conjunctions.py`) would cost more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracr.compiler.frontend.rules.counts import Table, combine, complement
from tracr.compiler.frontend.rules.elementwise import add_pairs
from tracr.compiler.frontend.rules.facts import distinct_codes
from tracr.compiler.frontend.rules.literals import add_literal
from tracr.compiler.frontend.rules.state import Inference
from tracr.compiler.frontend.trace import TracedNode
from tracr.compiler.selectors.head_plans import Reader, choose_plan
from tracr.errors import LimitError
from tracr.ir.budget import COMPARED
from tracr.ir.domains import Codes
from tracr.ir.ops import PAIR
from tracr.ir.selectors import CompositeNode, Kind, SelectorNode, parts_of
from tracr.rasp.expressions import RASPExpr

__all__ = ["for_reader", "join_literals"]

HOW: dict[Kind, Callable[[Table, Table], Table]] = {"and": lambda a, b: a & b, "or": lambda a, b: a | b}
Joined = tuple[int, int, Table]  # keys, queries, table
Sides = tuple[int, tuple[Codes, Codes]]  # an s-op, and for each of its codes the codes of the two s-ops it replaces


def join_literals(inference: Inference, kind: Kind, fst: SelectorNode, snd: SelectorNode) -> Joined | None:
    """Two selectors as one table, if that needs no new s-op."""
    keys = _one_of(inference, fst.keys, snd.keys)
    queries = _one_of(inference, fst.queries, snd.queries)
    return None if keys is None or queries is None else _joined(inference, kind, fst, snd, keys, queries)


def _joined(
    inference: Inference, kind: Kind, fst: SelectorNode, snd: SelectorNode, keys: Sides, queries: Sides
) -> Joined:
    (key, key_codes), (query, query_codes) = keys, queries
    limit = inference.options.max_cells
    if len(key_codes[0]) * len(query_codes[0]) > limit:
        raise LimitError(
            f"compares {len(key_codes[0]):,} pairs of keys with {len(query_codes[0]):,} pairs of queries",
            expression=fst.source,
            hint=f"map keys and queries to fewer values first, or raise max_cells (now {limit:,})",
        )
    cells = len(key_codes[0]) * len(query_codes[0])
    inference.budget.need(COMPARED * cells, f"compares {cells:,} pairs of values", fst)
    first = fst.table[query_codes[0]][:, key_codes[0]]
    second = snd.table[query_codes[1]][:, key_codes[1]]
    return key, query, combine(HOW[kind], first, second)


def _one_of(inference: Inference, fst: int, snd: int) -> Sides | None:
    """The s-op that can replace both: they are equal, or one is a function of the other (perhaps a constant)."""
    sizes = inference.sops[fst].domain.size, inference.sops[snd].domain.size
    if inference.facts[fst].canon == inference.facts[snd].canon:
        codes = np.arange(sizes[0], dtype=np.int32)
        return fst, (codes, codes)
    first, second = inference.facts[fst], inference.facts[snd]
    grouped = first.groups is not None and second.groups is not None
    if min(sizes) > 1 and not set(first.leaves) & set(second.leaves) and not grouped:
        return None
    if inference.count_pairs(fst, snd) not in sizes:
        return None
    pairs = inference.pairs(fst, snd)
    for number, other, own in ((fst, snd, 0), (snd, fst, 1)):
        function = len(pairs[0]) == sizes[own] and len(distinct_codes(pairs[own], sizes[own])) == sizes[own]
        if function and _may_vanish(inference, other, number):
            order = np.argsort(pairs[own])
            return number, (pairs[0][order], pairs[1][order])
    return None


def _may_vanish(inference: Inference, number: int, kept: int) -> bool:
    """Whether an s-op may be removed: it never raises, or the one that is kept is computed from it."""
    facts = inference.facts[number]
    if facts.exact and facts.joint.min(initial=0) >= 0:
        return True
    needed, stack = {kept}, [kept]
    while stack:
        inputs = set(inference.sops[stack.pop()].inputs) - needed
        needed |= inputs
        stack += inputs
    return number in needed


def for_reader(inference: Inference, expr: RASPExpr, selector: int, reader: Reader, width: int) -> int:
    """The selector for a reader: the given one, or the same over a product space if that is cheaper.

    `expr` is the selector as it was written.
    """
    composite = inference.selectors[selector]
    if isinstance(composite, SelectorNode):
        return selector
    plan = choose_plan(inference.selectors, selector, reader, inference.lengths[1], width)
    if plan is not None and plan.cost <= product_cost(inference, selector):
        return selector
    try:
        return _product(inference, expr, selector)
    except LimitError:
        if plan is None:
            raise
        return selector  # more expensive, but possible


def product_cost(inference: Inference, selector: int) -> int:
    """An upper bound on the cost of a product space: a direction and a neuron for each pair, and the head."""
    literals = [part for part in parts_of(inference.selectors, selector) if isinstance(part, SelectorNode)]
    sizes = []
    for side in ({part.keys for part in literals}, {part.queries for part in literals}):
        sizes.append(math.prod(inference.sops[number].domain.size for number in side) if len(side) > 1 else 0)
    return 2 * sum(sizes) + min(filter(None, sizes), default=0)


def _product(inference: Inference, expr: RASPExpr, selector: int) -> int:
    """Build the product space of a combination, part by part."""
    made: dict[int, SelectorNode] = {}
    for part in parts_of(inference.selectors, selector):
        if isinstance(part, SelectorNode):
            made[part.id] = part
            continue
        fst, snd = made[part.parts[0]], made[part.parts[-1]]
        if part.kind == "not":
            joined: Joined = fst.keys, fst.queries, complement(fst.table)
        else:
            keys = _pair_of(inference, part, expr, "keys", fst.keys, snd.keys)
            queries = _pair_of(inference, part, expr, "queries", fst.queries, snd.queries)
            joined = _joined(inference, part.kind, fst, snd, keys, queries)
        made[part.id] = add_literal(inference, TracedNode(inference.fresh_id(), part.label, expr, ()), *joined)
    return made[selector].id


def _pair_of(inference: Inference, part: CompositeNode, expr: RASPExpr, side: str, fst: int, snd: int) -> Sides:
    """An s-op that replaces both; a new one if there is none."""
    one = _one_of(inference, fst, snd)
    if one is not None:
        return one
    domains = inference.listed(fst, expr), inference.listed(snd, expr)
    number = inference.fresh_id()
    add_pairs(inference, number, f"{part.label}_{side}", expr, _Pair(), (fst, snd), keep_none=True)
    product = inference.listed(number, expr)
    first = np.array([domains[0].index[pair[0]] for pair in product.values], dtype=np.int32)  # type: ignore[index]
    second = np.array([domains[1].index[pair[1]] for pair in product.values], dtype=np.int32)  # type: ignore[index]
    return number, (first, second)


class _Pair:
    """The function (x, y), with a name of its own."""

    __name__ = PAIR

    def __call__(self, x: Any, y: Any) -> tuple[Any, Any]:
        return (x, y)
