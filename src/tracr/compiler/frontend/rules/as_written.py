"""The tabulated program as it was written, without the simplifications of selectors by `infer`.

`infer` makes a selector over an s-op and a function of it one table over the s-op alone, and uses that a causal query
sees only positions up to its own. Both are right on every input, but not if values are replaced
(`replaced_program.py`). Therefore the program is also kept with every selector over the s-ops that its expression
compares.
"""

from __future__ import annotations

from dataclasses import replace

from tracr.compiler.frontend.rules.state import Inference
from tracr.compiler.frontend.trace import TracedGraph, TracedNode
from tracr.ir.ops import Attention
from tracr.ir.program import InferredNode, Tables, Tabulation
from tracr.ir.selectors import CompositeNode, Kind, Selector, SelectorNode
from tracr.rasp.expressions import Select, SelectorAnd, SelectorNot, SelectorOr

__all__ = ["as_written"]

KINDS: dict[type, Kind] = {SelectorAnd: "and", SelectorOr: "or", SelectorNot: "not"}


def as_written(traced: TracedGraph, inference: Inference) -> Tables:
    """The tables with every selector over the s-ops, and combined from the selectors, that its expression names."""
    selectors: dict[int, Selector] = {}
    for number, selector in inference.selectors.items():
        node = traced.nodes[number] if number < len(traced.nodes) else None
        selectors[number] = selector if node is None else _selector(node, selector, inference)
    sops = {number: _attending(traced, node) for number, node in inference.sops.items()}
    return Tabulation(inference.options, sops, selectors, traced.outputs, inference.lengths)


def _selector(node: TracedNode, selector: Selector, inference: Inference) -> Selector:
    kind = KINDS.get(type(node.expr))
    if kind is not None:
        place = (selector.id, selector.label, selector.source, selector.origin, selector.counts)
        return CompositeNode(*place, kind, node.children)
    if isinstance(node.expr, Select) and isinstance(selector, SelectorNode):
        own = inference.unmasked.get(node.id)
        return selector if own is None else replace(selector, table=own)
    return selector


def _attending(traced: TracedGraph, node: InferredNode) -> InferredNode:
    """The s-op with the selector that its expression names, not one that `infer` derived from it."""
    if not isinstance(node.op, Attention) or node.id >= len(traced.nodes):
        return node
    named = traced.nodes[node.id].children[0]
    return node if node.op.selector == named else replace(node, op=replace(node.op, selector=named))
