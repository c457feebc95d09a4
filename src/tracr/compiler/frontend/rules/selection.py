"""Infer selectors, their boolean combinations and their widths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracr.compiler.frontend.rules.composites import composite_widths, orders_positions
from tracr.compiler.frontend.rules.counts import complement, surely_met
from tracr.compiler.frontend.rules.facts import SHAPE, Groups, strict_order
from tracr.compiler.frontend.rules.literals import add_literal
from tracr.compiler.frontend.rules.parts_of_pairs import PairBlock, split_comparison
from tracr.compiler.frontend.rules.products import for_reader, join_literals
from tracr.compiler.frontend.rules.state import Inference, infer_node
from tracr.compiler.frontend.rules.tabulate import tabulate_predicate
from tracr.compiler.frontend.trace import TracedNode
from tracr.ir.budget import COMPARED
from tracr.ir.domains import finite
from tracr.ir.ops import ERROR, Width
from tracr.ir.selectors import CompositeNode, Kind, SelectorNode
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


@infer_node.register
def _(expr: Select, inference: Inference, node: TracedNode) -> None:
    keys, queries = node.children
    domains = inference.listed(keys, expr), inference.listed(queries, expr)
    blocks = split_comparison(inference, expr.predicate, keys, queries)
    if blocks:
        inference.bypassed.update({keys: node.label, queries: node.label})
        _add_blocks(inference, node, blocks)
        return
    facts = inference.facts[keys], inference.facts[queries]
    table = tabulate_predicate(
        inference.caller(node, expr.predicate, predicate=True),
        *domains,
        lambda: surely_met(*facts, (len(domains[1]), len(domains[0])), inference.shape),
        inference.options.max_cells,
        inference.budget,
    )
    add_literal(inference, node, keys, queries, table)


def _add_blocks(inference: Inference, node: TracedNode, blocks: list[PairBlock]) -> None:
    """Record the union of disjoint blocks."""

    def fresh(label: str) -> TracedNode:
        return TracedNode(inference.fresh_id(), f"{node.label}_{label}", node.expr, ())

    def add_block(target: TracedNode, block: PairBlock) -> int:
        if block.inner is None:
            add_literal(inference, target, *block.outer)
            return target.id
        outer, inner = fresh("outer"), fresh("inner")
        add_literal(inference, outer, *block.outer)
        add_literal(inference, inner, *block.inner)
        _add_composite(inference, replace(target, children=(outer.id, inner.id)), "and")
        return target.id

    if len(blocks) == 1:
        add_block(node, blocks[0])
        return
    union = add_block(fresh("block"), blocks[0])
    for block in blocks[1:]:
        target = node if block is blocks[-1] else fresh("blocks")
        _add_composite(inference, replace(target, children=(union, add_block(fresh("block"), block))), "or")
        union = target.id


@infer_node.register
def _(expr: ConstantSelector, inference: Inference, node: TracedNode) -> None:
    size = inference.options.max_seq_len
    inference.budget.need(COMPARED * size**2, f"compares {size:,} positions with each other", expr)
    table = np.full((size, size), ERROR, dtype=np.int8)
    longest = min(size, len(expr.value))
    table[:longest, :longest] = np.array(expr.value, dtype=np.int8)[:longest, :longest]
    positions = inference.fresh_id()
    infer_node(Indices(), inference, TracedNode(positions, f"{node.label}_indices", Indices(), ()))
    add_literal(inference, node, positions, positions, table)


@infer_node.register
def _(expr: SelectorNot, inference: Inference, node: TracedNode) -> None:
    inner = inference.selectors[node.children[0]]
    if isinstance(inner, SelectorNode):
        add_literal(inference, node, inner.keys, inner.queries, complement(inner.table))
    else:
        _add_composite(inference, node, "not")


@infer_node.register
def _(expr: SelectorAnd, inference: Inference, node: TracedNode) -> None:
    _add_combination(inference, node, "and")


@infer_node.register
def _(expr: SelectorOr, inference: Inference, node: TracedNode) -> None:
    _add_combination(inference, node, "or")


def _add_combination(inference: Inference, node: TracedNode, kind: Kind) -> None:
    """Record one table for selectors over the same inputs, else a combination, for which `lower` finds heads."""
    fst, snd = (inference.selectors[child] for child in node.children)
    if isinstance(fst, SelectorNode) and isinstance(snd, SelectorNode):
        joined = join_literals(inference, kind, fst, snd)
        if joined is not None:
            add_literal(inference, node, *joined)
            return
    _add_composite(inference, node, kind)


def _add_composite(inference: Inference, node: TracedNode, kind: Kind) -> None:
    parts = tuple(node.children)
    inference.canonical(node.id, ("composite", kind, tuple(sorted(inference.canon[part] for part in parts))))
    composite = CompositeNode(node.id, node.label, repr(node.expr), node.expr.origin, (), kind, parts)
    inference.selectors[node.id] = composite
    inference.widths[node.id] = found = composite_widths(inference, composite)
    inference.selectors[node.id] = replace(composite, counts=found.counts)


@infer_node.register
def _(expr: SelectorWidth, inference: Inference, node: TracedNode) -> None:
    selector = for_reader(inference, expr.selector, node.children[0], "width", 1)
    found, select = inference.widths[selector], inference.selectors[selector]
    domain = finite(found.counts, ordered=True)
    determines: frozenset[int] = frozenset()
    distinct = orders_positions(inference, node.children[0])
    if isinstance(select, SelectorNode):
        keys, queries = inference.facts[select.keys], inference.facts[select.queries]
        if not inference.options.causal and keys.canon == queries.canon and strict_order(select.table):
            determines, distinct = keys.determines, distinct or keys.distinct
    by_shape = found.by_shape

    def groups() -> Groups:
        by_count = {count: np.array([code], dtype=np.int32) for code, count in enumerate(found.counts)}
        return Groups(inference.canon[selector], by_count, by_shape)

    inference.add(
        node.id,
        node.label,
        expr,
        Width(selector),
        domain,
        key=inference.canon[selector],
        leaves=() if by_shape is None else (SHAPE,),
        joint=None if by_shape is None else lambda: np.searchsorted(found.counts, by_shape).astype(np.int32),
        groups=groups,
        distinct=distinct,
        determines=determines,
    )
