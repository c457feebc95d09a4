"""The ground truth as one line of JSON, for files with the truth of very many models.

`truth_text(truth)` is the text of `json.dumps(truth.to_dict())`; a test compares them. It is faster, because most nodes
and edges are the same at several granularities: texts of their parts are made once.
"""

from __future__ import annotations

import functools
import json
from json.encoder import encode_basestring_ascii as quoted

from tracr.ground_truth.data import (
    GRANULARITIES,
    EdgeGroup,
    Granularity,
    GroundTruth,
    HookPlace,
    ModelNode,
    carried,
    edge_groups,
    heading,
)

__all__ = ["truth_text"]

WORDS = {None: "null", True: "true", False: "false"}


def truth_text(truth: GroundTruth) -> str:
    """The text of `json.dumps(truth.to_dict())`."""
    writer = _Writer(truth)
    every = ", ".join(f'"{granularity}": {writer.granularity(granularity)}' for granularity in GRANULARITIES)
    return f'{json.dumps(heading(truth))[:-1]}, "granularities": {{{every}}}}}'


class _Writer:
    """Writes the nodes and edges of one ground truth. It keeps the texts of places and writes by the ids of their
    objects, which live as long as the ground truth."""

    def __init__(self, truth: GroundTruth) -> None:
        self.truth = truth
        self.places: dict[int, str] = {}
        self.writes: dict[int, str] = {}
        self.nodes: dict[int, str] = {}

    def granularity(self, granularity: Granularity) -> str:
        """The nodes and edges at one granularity."""
        nodes = ", ".join([self.node(node) for node in self.truth.nodes(granularity)])
        edges = ", ".join([self.edge(group) for group in edge_groups(self.truth, granularity)])
        return f'{{"nodes": [{nodes}], "edges": [{edges}]}}'

    def place(self, place: HookPlace) -> str:
        """The place of an activation."""
        found = self.places.get(id(place))
        if found is None:
            found = self.places[id(place)] = _place(place.hook, place.head, place.neurons)
        return found

    def node(self, node: ModelNode) -> str:
        """A node. At several granularities it can be one object."""
        found = self.nodes.get(id(node))
        if found is None:
            found = self.nodes[id(node)] = self._node(node)
        return found

    def _node(self, node: ModelNode) -> str:
        writes = self.writes.get(id(node.writes))
        if writes is None:
            parts = [
                f'{{"variable": {quoted(one.variable)}, "expression": {quoted(one.expression)}, '
                f'"line": {quoted(one.line)}, "slots": {list(one.slots)}}}'
                for one in node.writes
            ]
            writes = self.writes[id(node.writes)] = ", ".join(parts)
        inputs = ", ".join([f'"{name}": {self.place(place)}' for name, place in node.inputs])
        attends = "null" if node.attends is None else json.dumps(vars(node.attends))
        return (
            f'{{"id": {quoted(node.id)}, "kind": "{node.kind}", "layer": {_number(node.layer)}, '
            f'"head": {_number(node.head)}, "neurons": {_span(node.neurons)}, "writes": [{writes}], '
            f'"computes": {quoted(node.computes)}, "output": {self.place(node.output)}, "inputs": {{{inputs}}}, '
            f'"attends": {attends}, "clears": {WORDS[node.clears]}, "roles": {_roles(node.roles)}, '
            f'"sentence": {quoted(node.sentence)}}}'
        )

    def edge(self, group: EdgeGroup) -> str:
        """An edge, made of a group of edges."""
        (source, target, into, variable), edges, output, place = group
        slots, positions, cancelled = carried(edges)
        return (
            f'{{"source": {quoted(source)}, "target": {quoted(target)}, "input": "{into}", '
            f'"variable": {quoted(variable)}, "slots": {list(slots)}, "source_place": {self.place(output)}, '
            f'"target_place": {self.place(place)}, "positions": {_positions(positions)}, '
            f'"cancelled": {WORDS[cancelled]}}}'
        )


def _number(number: int | None) -> str:
    return "null" if number is None else str(number)


def _span(span: tuple[int, int] | None) -> str:
    return "null" if span is None else str(list(span))


@functools.lru_cache(maxsize=1024)
def _place(hook: str, head: int | None, neurons: tuple[int, int] | None) -> str:
    return json.dumps({"hook": hook, "head": head, "neurons": neurons})


@functools.lru_cache(maxsize=256)
def _roles(roles: tuple[str, ...]) -> str:
    return json.dumps(roles)


@functools.lru_cache(maxsize=256)
def _positions(positions: tuple[tuple[int, int], ...] | None) -> str:
    return json.dumps(positions)
