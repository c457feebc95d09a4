"""Infer selectors, their boolean combinations and their widths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracr.compiler.domains import Codes, finite
from tracr.compiler.inference.elementwise import add_pairs
from tracr.compiler.inference.facts import SHAPE, Groups, feasible_pairs, strict_order
from tracr.compiler.inference.state import Inference, infer_node
from tracr.compiler.inference.tabulate import tabulate_predicate
from tracr.compiler.inference.widths import Table, combine, complement, surely_met, widths
from tracr.compiler.trace import Node
from tracr.compiler.typed import ERROR, SelectorNode, Width
from tracr.errors import LimitError
from tracr.rasp.expressions import (
    ConstantSelector,
    Indices,
    Select,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
)

__all__: list[str] = []


def _add_selector(inference: Inference, node: Node, keys: int, queries: int, table: Table) -> None:
    facts = inference.facts[keys], inference.facts[queries]
    inference.canonical(node.id, ("selector", facts[0].canon, facts[1].canon, table.tobytes()))
    found = widths(table, *facts, inference.shape, inference.options.causal)
    inference.widths[node.id] = found
    inference.selectors[node.id] = SelectorNode(
        node.id, node.label, repr(node.expr), node.expr.origin, keys, queries, table, found.counts
    )


@infer_node.register
def _(expr: Select, inference: Inference, node: Node) -> None:
    keys, queries = node.children
    domains = inference.listed(keys, expr), inference.listed(queries, expr)
    facts = inference.facts[keys], inference.facts[queries]
    table = tabulate_predicate(
        inference.caller(node, expr.predicate, predicate=True),
        *domains,
        lambda: surely_met(*facts, (len(domains[1]), len(domains[0])), inference.shape),
        inference.options.max_cells,
    )
    _add_selector(inference, node, keys, queries, table)


@infer_node.register
def _(expr: ConstantSelector, inference: Inference, node: Node) -> None:
    size = inference.options.max_seq_len
    table = np.full((size, size), ERROR, dtype=np.int8)
    longest = min(size, len(expr.value))
    table[:longest, :longest] = np.array(expr.value, dtype=np.int8)[:longest, :longest]
    positions = inference.fresh_id()
    infer_node(Indices(), inference, Node(positions, f"{node.label}_indices", Indices(), ()))
    _add_selector(inference, node, positions, positions, table)


@infer_node.register
def _(expr: SelectorNot, inference: Inference, node: Node) -> None:
    inner = inference.selectors[node.children[0]]
    _add_selector(inference, node, inner.keys, inner.queries, complement(inner.table))


@infer_node.register
def _(expr: SelectorAnd, inference: Inference, node: Node) -> None:
    _add_combination(inference, node, lambda a, b: a & b)


@infer_node.register
def _(expr: SelectorOr, inference: Inference, node: Node) -> None:
    _add_combination(inference, node, lambda a, b: a | b)


def _add_combination(inference: Inference, node: Node, how: Callable[[Table, Table], Table]) -> None:
    """Over the same inputs one table; over different inputs a table over their product space.

    The paper's refactoring: keys (k1, k2) and queries (q1, q2) as pairs, computed by the MLP before the head.
    """
    fst, snd = (inference.selectors[child] for child in node.children)
    keys, key_codes = _common(inference, node, "keys", fst.keys, snd.keys)
    queries, query_codes = _common(inference, node, "queries", fst.queries, snd.queries)
    limit = inference.options.max_cells
    if len(key_codes[0]) * len(query_codes[0]) > limit:
        raise LimitError(
            f"compares {len(key_codes[0]):,} pairs of keys with {len(query_codes[0]):,} pairs of queries",
            expression=node.expr,
            hint=f"map keys and queries to fewer values first, or raise max_cells (now {limit:,})",
        )
    first = fst.table[query_codes[0]][:, key_codes[0]]
    second = snd.table[query_codes[1]][:, key_codes[1]]
    _add_selector(inference, node, keys, queries, combine(how, first, second))


def _common(inference: Inference, node: Node, side: str, fst: int, snd: int) -> tuple[int, tuple[Codes, Codes]]:
    """An s-op that stands for both, and for each of its codes the codes of the two."""
    domains = inference.listed(fst, node.expr), inference.listed(snd, node.expr)
    codes = [np.arange(len(domain), dtype=np.int32) for domain in domains]
    if inference.facts[fst].canon == inference.facts[snd].canon:
        return fst, (codes[0], codes[0])
    pairs = feasible_pairs(inference.facts[fst], inference.facts[snd], (len(domains[0]), len(domains[1])))
    for number, other, own in ((fst, snd, 0), (snd, fst, 1)):
        function = len(pairs[0]) == len(domains[own]) and len(np.unique(pairs[own])) == len(domains[own])
        if function and _may_vanish(inference, other, number):
            order = np.argsort(pairs[own])  # the other, a constant perhaps, is a function of this one
            return number, (pairs[0][order], pairs[1][order])
    number = inference.fresh_id()
    add_pairs(inference, number, f"{node.label}_{side}", node.expr, _pair, (fst, snd), pairs, keep_none=True)
    product = inference.listed(number, node.expr)
    first = np.array([domains[0].index[pair[0]] for pair in product.values], dtype=np.int32)  # type: ignore[index]
    second = np.array([domains[1].index[pair[1]] for pair in product.values], dtype=np.int32)  # type: ignore[index]
    return number, (first, second)


def _may_vanish(inference: Inference, number: int, kept: int) -> bool:
    """Whether nothing is lost with an s-op: it never raises, or is computed for the one that is kept anyway."""
    facts = inference.facts[number]
    if facts.exact and facts.joint is not None and facts.joint.min(initial=0) >= 0:
        return True
    needed, stack = {kept}, [kept]
    while stack:
        inputs = set(inference.sops[stack.pop()].inputs) - needed
        needed |= inputs
        stack += inputs
    return number in needed


def _pair(x: Any, y: Any) -> tuple[Any, Any]:
    return (x, y)


@infer_node.register
def _(expr: SelectorWidth, inference: Inference, node: Node) -> None:
    (selector,) = node.children
    found, select = inference.widths[selector], inference.selectors[selector]
    domain = finite(found.counts, ordered=True)
    keys, queries = inference.facts[select.keys], inference.facts[select.queries]
    ordered = not inference.options.causal and keys.canon == queries.canon and strict_order(select.table)
    joint = None
    if found.by_shape is not None:
        joint = np.searchsorted(np.array(found.counts), found.by_shape).astype(np.int32)
    by_count = {count: np.array([code], dtype=np.int32) for code, count in enumerate(found.counts)}
    inference.add(
        node.id,
        node.label,
        expr,
        Width(selector),
        domain,
        key=inference.canon[selector],
        leaves=(SHAPE,) if joint is not None else (),
        joint=joint,
        groups=Groups(inference.canon[selector], by_count),
        distinct=ordered and keys.distinct,
        determines=keys.determines if ordered else frozenset(),
    )
