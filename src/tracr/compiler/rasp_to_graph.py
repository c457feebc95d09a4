"""The graph of a program for networkx, as existing code expects it. The compiler itself uses `trace.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracr.compiler.nodes import EXPR, ID
from tracr.errors import ExpressionError
from tracr.extras import need
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.traversal import topological

__all__ = ["ExtractRaspGraphOutput", "extract_rasp_graph"]


@dataclass(frozen=True, eq=False)
class ExtractRaspGraphOutput:
    """The networkx.DiGraph, its node for the whole program, and its nodes for the s-ops without inputs."""

    graph: Any
    sink: dict[str, Any]
    sources: list[dict[str, Any]]


def extract_rasp_graph(tip: RASPExpr) -> ExtractRaspGraphOutput:
    """Every expression under its label, with edges from inputs to readers.

    `graph.nodes[expr.label]["EXPR"]` is the expression. Labels contain a unique id, to keep nodes of one name apart.
    """
    if not isinstance(tip, RASPExpr):
        raise ExpressionError(f"only a RASP expression has a graph, not {tip!r}", hint="build one with tracr.rasp")
    graph = need("networkx", "graph").DiGraph()
    sources = []
    for expr in topological([tip]):
        new = expr.label not in graph
        graph.add_node(expr.label, **{ID: expr.label, EXPR: expr})
        graph.add_edges_from((child.label, expr.label) for child in expr.children)
        if new and not expr.children:
            sources.append(graph.nodes[expr.label])
    return ExtractRaspGraphOutput(graph, graph.nodes[tip.label], sources)
