"""The pass `trace`: lists the operations of the program as a graph.

Every expression that the outputs are built from becomes one node; inputs come before readers. Nodes are numbered and
labelled in that order, so the same program always gives the same graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracr.caching import cached_property
from tracr.errors import ExpressionError, InternalError
from tracr.ir.graph import Graph, Node, unique_labels
from tracr.rasp.expressions import RASPExpr, SOp
from tracr.rasp.traversal import topological

__all__ = ["Outputs", "TracedGraph", "TracedNode", "trace"]

RESERVED = ("tokens", "indices", "one")
Outputs = Mapping[str, SOp]


@dataclass(frozen=True)
class TracedNode:
    """One expression of the program, with the number and label of its node."""

    id: int
    label: str
    expr: RASPExpr
    children: tuple[int, ...]


@dataclass(frozen=True)
class TracedGraph:
    """The graph of the program with its expressions: nodes in topological order, and which of them are outputs."""

    nodes: tuple[TracedNode, ...]
    outputs: tuple[tuple[str, int], ...]

    @cached_property
    def graph(self) -> Graph:
        """The graph without the expressions."""
        return Graph(tuple(Node(one.label, type(one.expr).__name__, one.children) for one in self.nodes), self.outputs)

    @property
    def expressions(self) -> tuple[RASPExpr, ...]:
        """The expression of each node of the graph."""
        return tuple(node.expr for node in self.nodes)

    def verify(self) -> None:
        """Raise if an invariant is broken: each node's number is its place, and the graph is valid."""
        if any(node.id != place for place, node in enumerate(self.nodes)):
            raise InternalError("a traced node has the number of another")
        self.graph.verify()

    def show(self) -> str:
        """One line per node."""
        return self.graph.show()


def trace(outputs: Outputs) -> TracedGraph:
    """The graph of everything the outputs are built from.

    >>> from tracr.rasp import rasp
    >>> print(trace({"output": (rasp.tokens == "x").named("is_x")}).show())
    tokens = Tokens()
    is_x = Map(tokens)
    output output: is_x
    """
    for name, output in outputs.items():
        _check_output(name, output)
    exprs = topological(outputs.values())
    labels = _labels(exprs)
    ids = {expr: number for number, expr in enumerate(exprs)}
    nodes = tuple(
        TracedNode(number, labels[expr], expr, tuple([ids[child] for child in expr.children]))
        for expr, number in ids.items()
    )
    return TracedGraph(nodes, tuple((name, ids[output]) for name, output in outputs.items()))


def _check_output(name: str, output: object) -> None:
    """Refuse an output that is not an s-op."""
    if not isinstance(output, SOp):
        hint = "rasp.SelectorWidth or rasp.Aggregate make an s-op of a selector"
        raise ExpressionError(
            f"only an s-op can be compiled, but output {name!r} is {output!r}",
            hint=hint if isinstance(output, RASPExpr) else "build a program with tracr.rasp",
        )


def _labels(exprs: Iterable[RASPExpr]) -> dict[RASPExpr, str]:
    """A label for each expression: its name, made unique. The names of the inputs and `one` are reserved."""
    names = {expr: expr.name for expr in exprs}
    sources = [expr for expr, name in names.items() if name in RESERVED and name == type(expr).default_name]
    first_of = {names[expr]: expr for expr in reversed(sources)}
    others = [expr for expr, name in names.items() if first_of.get(name) is not expr]
    labels = dict(zip(others, unique_labels([names[expr] for expr in others], RESERVED), strict=True))
    return labels | {expr: name for name, expr in first_of.items()}
