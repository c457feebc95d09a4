"""The graph of the operations of a program, as written: labels, kinds and edges, without the expressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tracr.errors import InternalError

__all__ = ["Graph", "Node", "unique_labels"]

SELECTORS = ("Select", "ConstantSelector", "SelectorAnd", "SelectorOr", "SelectorNot")


@dataclass(frozen=True)
class Node:
    """One operation of the program: its label, its kind (`Map`, `Aggregate`, ...) and the numbers of its inputs."""

    label: str
    kind: str
    children: tuple[int, ...]

    @property
    def is_selector(self) -> bool:
        """Whether it is a selector, not an s-op."""
        return self.kind in SELECTORS


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order, numbered from 0, and which of them are outputs."""

    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, int], ...]

    def verify(self) -> None:
        """Raise if an invariant is broken: edges go forward, labels are unique, outputs are s-ops of the graph."""
        for position, node in enumerate(self.nodes):
            if not all(0 <= child < position for child in node.children):
                raise InternalError(f"graph node {node.label} comes before one of its inputs")
        if len({node.label for node in self.nodes}) != len(self.nodes):
            raise InternalError("two graph nodes share a label")
        for name, output in self.outputs:
            if not 0 <= output < len(self.nodes):
                raise InternalError(f"the graph has no node for output {name}")
            if self.nodes[output].is_selector:
                raise InternalError(f"output {name} is not an s-op")

    def show(self) -> str:
        """One line per node."""
        lines = []
        for node in self.nodes:
            inputs = ", ".join(self.nodes[child].label for child in node.children)
            lines.append(f"{node.label} = {node.kind}({inputs})")
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
