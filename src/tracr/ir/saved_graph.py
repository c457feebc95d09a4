"""The graph of a loaded model: the nodes as they were traced, without the expressions, which were not saved."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.errors import FormatError
from tracr.ir.graph import Graph

__all__ = ["SavedGraph", "SavedNode", "saved_graph"]


@dataclass(frozen=True)
class SavedNode:
    """One operation of the program: its label, its kind (`Map`, `Aggregate`, ...) and what it reads."""

    label: str
    kind: str
    children: tuple[int, ...]


@dataclass(frozen=True)
class SavedGraph:
    """Nodes in topological order, and which of them are outputs."""

    nodes: tuple[SavedNode, ...]
    outputs: tuple[tuple[str, int], ...]

    def verify(self) -> None:
        """Raise if an edge goes backwards or an output is not there."""
        for position, node in enumerate(self.nodes):
            if not all(0 <= child < position for child in node.children):
                raise FormatError(f"graph node {node.label} stands before something it reads")
        for name, output in self.outputs:
            if not 0 <= output < len(self.nodes):
                raise FormatError(f"the graph has no node for output {name}")

    def show(self) -> str:
        """One line per node, as `Graph.show`."""
        lines = []
        for node in self.nodes:
            inputs = ", ".join(self.nodes[child].label for child in node.children)
            lines.append(f"{node.label} = {node.kind}({inputs})")
        lines += [f"output {name}: {self.nodes[output].label}" for name, output in self.outputs]
        return "\n".join(lines)


def saved_graph(graph: Graph | SavedGraph) -> SavedGraph:
    """What is saved of a graph."""
    if isinstance(graph, SavedGraph):
        return graph
    nodes = tuple(SavedNode(node.label, type(node.expr).__name__, node.children) for node in graph.nodes)
    return SavedGraph(nodes, graph.outputs)
