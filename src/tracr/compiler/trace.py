"""Step 1: trace the program into a computational graph.

Every expression the outputs are built from becomes one node; children come before parents. Nodes are numbered and
labelled in that order, so the same program always gives the same graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracr.errors import ExpressionError, InternalError
from tracr.rasp.expressions import RASPExpr, SOp
from tracr.rasp.traversal import topological

__all__ = ["Graph", "Node", "Outputs", "trace", "unique_labels"]

RESERVED = ("tokens", "indices", "one")
Outputs = Mapping[str, SOp]


@dataclass(frozen=True)
class Node:
    """One operation of the program."""

    id: int
    label: str
    expr: RASPExpr
    children: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """The program as a graph: nodes in topological order, and which of them are outputs."""

    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, int], ...]

    def verify(self) -> None:
        """Raise if an invariant is broken: ids are positions, edges go forward, labels are unique."""
        for position, node in enumerate(self.nodes):
            if node.id != position or any(child >= position for child in node.children):
                raise InternalError(f"graph node {node.label} stands before something it reads")
        if len({node.label for node in self.nodes}) != len(self.nodes):
            raise InternalError("two graph nodes share a label")
        for name, output in self.outputs:
            if not isinstance(self.nodes[output].expr, SOp):
                raise InternalError(f"output {name} is not an s-op")

    def show(self) -> str:
        """One line per node."""
        lines = []
        for node in self.nodes:
            inputs = ", ".join(self.nodes[child].label for child in node.children)
            lines.append(f"{node.label} = {type(node.expr).__name__}({inputs})")
        lines += [f"output {name}: {self.nodes[output].label}" for name, output in self.outputs]
        return "\n".join(lines)


def unique_labels(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The names, with `_2`, `_3`, ... added to those that occur again.

    >>> unique_labels(["map", "x", "map"])
    ['map', 'x', 'map_2']
    """
    used = set(taken)
    counts: dict[str, int] = {}
    labels = []
    for name in names:
        label = name
        while label in used:
            counts[name] = counts.get(name, 1) + 1
            label = f"{name}_{counts[name]}"
        used.add(label)
        labels.append(label)
    return labels


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
