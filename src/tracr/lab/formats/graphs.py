"""Circuits as graphs of networkx."""

from __future__ import annotations

from typing import Any

from tracr.errors import FormatError
from tracr.extras import need
from tracr.ground_truth.edge_keys import as_text
from tracr.lab.formats.found_circuit import FoundCircuit
from tracr.lab.formats.naming import edge_key
from tracr.lab.formats.sizes import CircuitSizes

__all__ = ["from_networkx", "to_networkx"]


def to_networkx(circuit: FoundCircuit) -> Any:
    """A `networkx.DiGraph` with the circuit's edges, which have `score` and, if the circuit says, `in_graph`.

    Nodes have our names. A head's inputs are nodes of their own (`blocks.0.attn.0.q`), each with an edge without
    attributes to its head, so that paths go through heads.
    """
    graph = need("networkx", extra="graph").DiGraph()
    for edge in circuit.edges:
        score = {"score": circuit.scores[edge]} if edge in circuit.scores else {}
        inside = {} if circuit.chosen is None else {"in_graph": edge in circuit.chosen}
        graph.add_edge(*edge, **score, **inside)
        head, _, part = edge[1].rpartition(".")
        if part in ("q", "k", "v"):
            graph.add_edge(edge[1], head)
    return graph


def from_networkx(graph: Any, sizes: CircuitSizes) -> FoundCircuit:
    """The circuit of a `networkx.DiGraph` as `to_networkx` makes it, for a model of these sizes."""
    if graph.is_multigraph() or not graph.is_directed():
        raise FormatError("a circuit is a DiGraph: directed, with one edge between two nodes", hint="nx.DiGraph(graph)")
    scores, chosen, says = {}, set(), False
    for writer, reader, values in graph.edges(data=True):
        if f"{writer}"[:-2] == reader and f"{writer}"[-2:] in (".q", ".k", ".v"):
            continue
        edge = edge_key(f"{writer}->{reader}", "tracr", sizes)
        if "score" in values:
            scores[edge] = values["score"]
        if "in_graph" in values:
            if not isinstance(values["in_graph"], bool):
                raise FormatError(f"in_graph of {as_text(edge)} is {values['in_graph']!r}", hint="write True or False")
            says = True
            chosen |= {edge} if values["in_graph"] else set()
        if not {"score", "in_graph"} & {*values}:
            raise FormatError(f"the edge {as_text(edge)} has neither score nor in_graph", hint="add score=")
    return FoundCircuit(scores, frozenset(chosen) if says else None)
