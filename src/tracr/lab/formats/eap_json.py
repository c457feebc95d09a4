"""The JSON of EAP and MIB circuits: `cfg`, `nodes` and `edges`.

    {"cfg": {"n_layers": 1, "n_heads": 1, "parallel_attn_mlp": false, "d_model": 8},
     "nodes": {"input": {"in_graph": true}, "a0.h0": {"in_graph": true, "score": 0.5}, ...},
     "edges": {"input->a0.h0<q>": {"score": 0.5, "in_graph": true}, ...}}

Edges may be missing, and so may one of `score` and `in_graph`, for all edges. Nodes are checked but not used: their
scores may be NaN, which EAP-IG writes for a node without one, and a node may be just a boolean.
"""

from __future__ import annotations

from typing import Any

from tracr.errors import FormatError
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.formats.found_circuit import FoundCircuit
from tracr.lab.formats.naming import edge_key, edge_name, node_names
from tracr.lab.formats.problems import Problems
from tracr.lab.formats.sizes import CircuitSizes
from tracr.saving.json_reader import Reader

__all__ = ["KEYS", "eap_json", "read_eap"]

KEYS = ("cfg", "nodes", "edges")
NODE = ("in_graph", "score", "neurons", "neurons_scores")
SIZES = ("n_layers", "n_heads", "parallel_attn_mlp", "d_model")


def read_eap(reader: Reader, sizes: CircuitSizes | None, problems: Problems) -> FoundCircuit:
    """The circuit of a JSON document; what is wrong with it goes to `problems`."""
    given = reader.object(KEYS, optional=("neurons",))
    own = _sizes(given["cfg"], sizes, problems)
    nodes = node_names("eap", own)
    for name, node in problems.until_many(given["nodes"].members()):
        with problems.at(node.where):
            if name not in nodes:
                node.fail(f"is no node for n_layers = {own.layers} and n_heads = {own.heads}")
            if not isinstance(node.data, bool):
                node.object(("in_graph",), optional=NODE)["in_graph"].boolean()
    scores: dict[EdgeKey, float] = {}
    chosen: set[EdgeKey] = set()
    seen: set[EdgeKey] = set()
    fields: set[frozenset[str]] = set()
    for name, edge in problems.until_many(given["edges"].members()):
        with problems.at(edge.where):
            values = edge.object((), optional=("score", "in_graph"))
            if not values:
                edge.fail("has neither score nor in_graph")
            key = edge_key(name, "eap", own)
            if key in seen:
                edge.fail("is an edge that occurs twice")
            seen.add(key)
            if "score" in values:
                scores[key] = float(values["score"].number())
            if "in_graph" in values and values["in_graph"].boolean():
                chosen.add(key)
            fields.add(frozenset(values))
    if len(fields) > 1:
        problems.add(f"{reader.where}.edges: some edges have score or in_graph and others do not")
    says = any("in_graph" in one for one in fields)
    return FoundCircuit(scores, frozenset(chosen) if says else None, absolute=True)


def _sizes(reader: Reader, sizes: CircuitSizes | None, problems: Problems) -> CircuitSizes:
    """The sizes in `cfg`; they must be those of the subject, but for heads that are zeros."""
    given = reader.object(("n_layers", "n_heads"), optional=reader.data if isinstance(reader.data, dict) else ())
    if "parallel_attn_mlp" in given and given["parallel_attn_mlp"].boolean():
        given["parallel_attn_mlp"].fail("is true, but in the models here MLPs read what heads of their layer write")
    layers, heads = given["n_layers"].integer(0), given["n_heads"].integer(1)
    width = given["d_model"].integer(1) if "d_model" in given else 1
    if sizes is not None and layers != sizes.layers:
        problems.add(f"{given['n_layers'].where} is {layers}, and the number of the subject's layers is {sizes.layers}")
    try:
        return CircuitSizes(layers, heads, width)
    except FormatError as error:
        reader.fail(f"cannot be read: {error.diagnostic.what}")


def eap_json(circuit: FoundCircuit, sizes: CircuitSizes) -> dict[str, Any]:
    """The JSON document of a circuit. An edge without a score has 1 if it is in the circuit, else 0."""
    chosen = circuit.chosen or frozenset()
    edges = {edge_name(edge, "eap", sizes): edge for edge in circuit.edges}
    touched = {end.partition("<")[0] for name, edge in edges.items() if edge in chosen for end in name.split("->")}
    return {
        "cfg": dict(zip(SIZES, (sizes.layers, sizes.heads, False, sizes.width), strict=True)),
        "nodes": {name: {"in_graph": name in touched} for name in node_names("eap", sizes)},
        "edges": {
            name: {"score": float(circuit.scores.get(edge, edge in chosen)), "in_graph": edge in chosen}
            for name, edge in edges.items()
        },
    }
