"""Recording a selector over two s-ops: its table, and how many keys it selects."""

from __future__ import annotations

import numpy as np

from tracr.compiler.frontend.rules.counts import Table, masks, widths, widths_by_position
from tracr.compiler.frontend.rules.facts import Facts
from tracr.compiler.frontend.rules.state import Cells, Inference
from tracr.compiler.frontend.trace import TracedNode
from tracr.ir.selectors import SelectorNode
from tracr.ir.switches import OptionName

__all__ = ["add_literal"]


def add_literal(inference: Inference, node: TracedNode, keys: int, queries: int, table: Table) -> SelectorNode:
    """Record `node`, or a part of it, as a selector with this table."""
    facts = inference.facts[keys], inference.facts[queries]
    inference.budget.hold(table.nbytes, f"compares {table.size:,} pairs of values", node.expr)
    if inference.options.causal and _all_seen_selected(inference, table, *facts):
        inference.unmasked[node.id] = table
        table = np.ones_like(table)
    first = inference.canonical(node.id, ("selector", facts[0].canon, facts[1].canon, Cells(table)))
    found = inference.widths.get(first)
    if found is None:
        found = widths(table, *facts, inference.shape, inference.options.causal)
        if found.by_shape is None and inference.options.on(OptionName.MATCH):
            found = widths_by_position(table, *facts, inference.shape, inference.options.causal) or found
    inference.widths[node.id] = found
    literal = SelectorNode(node.id, node.label, repr(node.expr), node.expr.origin, found.counts, keys, queries, table)
    inference.selectors[node.id] = literal
    return literal


def _all_seen_selected(inference: Inference, table: Table, keys: Facts, queries: Facts) -> bool:
    """Whether a causal query selects every key that it sees: a comparison `<=` of positions equals the causal mask."""
    by_length = masks(table, keys, queries, inference.shape, causal=True)
    return by_length is not None and all((mask == np.tril(np.ones_like(mask))).all() for mask in by_length)
