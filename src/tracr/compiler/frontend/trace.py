"""Step 1: trace the program into a computational graph.

Every expression the outputs are built from becomes one node; children come before parents. Nodes are numbered and
labelled in that order, so the same program always gives the same graph.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracr.errors import ExpressionError
from tracr.ir.graph import Graph, Node, unique_labels
from tracr.rasp.expressions import RASPExpr, SOp
from tracr.rasp.traversal import topological

__all__ = ["Outputs", "trace"]

RESERVED = ("tokens", "indices", "one")
Outputs = Mapping[str, SOp]


def trace(outputs: Outputs) -> Graph:
    """The graph of everything the outputs are built from.

    >>> from tracr.rasp import rasp
    >>> print(trace({"output": (rasp.tokens == "x").named("is_x")}).show())
    tokens = Tokens()
    is_x = Map(tokens)
    output output: is_x
    """
    for name, output in outputs.items():
        if not isinstance(output, SOp):
            hint = "rasp.SelectorWidth or rasp.Aggregate make an s-op of a selector"
            raise ExpressionError(
                f"only an s-op can be compiled, but output {name!r} is {output!r}",
                hint=hint if isinstance(output, RASPExpr) else "build a program with tracr.rasp",
            )
    names = {expr: expr.name for expr in topological(outputs.values())}
    sources = [expr for expr, name in names.items() if name in RESERVED and name == type(expr).default_name]
    first_of = {names[expr]: expr for expr in reversed(sources)}
    others = [expr for expr, name in names.items() if first_of.get(name) is not expr]
    labels = dict(zip(others, unique_labels([names[expr] for expr in others], RESERVED), strict=True))
    labels.update({expr: name for name, expr in first_of.items()})
    ids = {expr: number for number, expr in enumerate(names)}
    nodes = tuple(
        Node(number, labels[expr], expr, tuple([ids[child] for child in expr.children])) for expr, number in ids.items()
    )
    return Graph(nodes, tuple((name, ids[output]) for name, output in outputs.items()))
