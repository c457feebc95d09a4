"""The ground truth as JSON and as a graph of networkx."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import tracr
from tests.agreement import inputs_of
from tests.library import compiled
from tracr.ground_truth.circuits import MinimalCircuit, Reason
from tracr.ground_truth.data import GRANULARITIES, GroundTruth
from tracr.rasp import rasp

SCHEMA = Path(__file__).parents[2] / "docs" / "ground-truth.md"


# As data

MAKE = """
import tracr
from tracr.rasp import programs
for name in ("hist2", "shuffle_dyck", "shift_by"):
    example = programs.EXAMPLES[name]
    truth = tracr.compile(example.program, example.vocab, example.max_seq_len).ground_truth
    data = [list((example.vocab * 3)[k:k + 3]) for k in range(3)]
    print(truth.to_json() + truth.minimal(ablation="resample", data=data, seed=1).to_json())
"""


def test_the_json_is_the_same_in_every_process() -> None:
    """Byte by byte, whatever the hash seed."""
    texts = {
        subprocess.run(
            [sys.executable, "-c", MAKE],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    }
    assert len(texts) == 1
    assert len(texts.pop()) > 10_000


def documented() -> dict[str, set[str]]:
    """The keys of each object, from the tables of docs/ground-truth.md."""
    schema = SCHEMA.read_text(encoding="utf-8").partition("## The JSON")[2]
    sections = re.split(r"^### (\w+)$", schema, flags=re.MULTILINE)[1:]
    return {
        name: set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }


def validate(truth: GroundTruth, circuit: MinimalCircuit) -> None:
    keys = documented()

    def check(kind: str, value: dict[str, Any]) -> dict[str, Any]:
        assert set(value) == keys[kind], kind
        return value

    def check_place(place: dict[str, Any]) -> None:
        check("place", place)
        assert isinstance(place["hook"], str)
        assert place["head"] is None or place["neurons"] is None

    def check_edge(edge: dict[str, Any], nodes: set[str]) -> None:
        check("edge", edge)
        assert {edge["source"], edge["target"]} <= nodes
        assert edge["input"] in ("q", "k", "v", "in")
        assert all(0 <= slot < len(whole["dimensions"]) for slot in edge["slots"])
        assert edge["slots"]
        check_place(edge["source_place"])
        check_place(edge["target_place"])

    whole = check("truth", json.loads(truth.to_json()))
    for one in whole["folded"]:
        check("folded", one)
        assert {reader.rpartition(".")[0] if reader[-1] in "qkv" else reader for reader in one["readers"]} <= {
            node.id for node in truth.nodes()
        }
    assert set(whole["granularities"]) == set(GRANULARITIES)
    for part in whole["granularities"].values():
        assert set(part) == {"nodes", "edges"}
        for node in part["nodes"]:
            check("node", node)
            assert node["kind"] in ("embedding", "head", "neurons", "unembedding", "attention", "mlp")
            for written in node["writes"]:
                check("written", written)
            for place in (node["output"], *node["inputs"].values()):
                check_place(place)
            if node["attends"] is not None:
                check("attends", node["attends"])
        nodes = {node["id"] for node in part["nodes"]}
        for edge in part["edges"]:
            check_edge(edge, nodes)
    small = check("circuit", json.loads(circuit.to_json()))
    for inert in small["inert"]:
        check("inert", inert)
        assert inert["reason"] in get_args(Reason)
    for edge in (*small["inside"], *small["outside"], *(inert["edge"] for inert in small["inert"])):
        check_edge(edge, nodes)


@pytest.mark.parametrize("name", ["hist2", "shift_by", "shuffle_dyck"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_json_has_the_documented_keys(name: str, level: int) -> None:
    """No more, no less, in every object."""
    model = compiled(name, level)
    validate(model.ground_truth, model.ground_truth.minimal(data=inputs_of(model)))


def test_a_program_without_layers_has_a_ground_truth() -> None:
    """An output that is the input: one edge, from the embedding to the unembedding."""
    truth = tracr.compile(rasp.tokens, "ab", 3).ground_truth
    assert [str(edge) for edge in truth.edges()] == ["embed -> unembed: tokens"]
    circuit = truth.minimal(data=["ab", "ba"])
    assert circuit.inside == truth.edges()
    validate(truth, circuit)


def test_networkx() -> None:
    """Nodes and edges with the keys of the JSON."""
    networkx = pytest.importorskip("networkx")
    truth = compiled("hist2").ground_truth
    for granularity in GRANULARITIES:
        graph = truth.to_networkx(granularity)
        assert networkx.is_directed_acyclic_graph(graph)
        assert graph.number_of_nodes() == len(truth.nodes(granularity))
        assert graph.number_of_edges() == len(truth.edges(granularity))
        assert set(graph.nodes["embed"]) == documented()["node"]
        for _, _, attributes in graph.edges(data=True):
            assert set(attributes) == documented()["edge"]


def test_networkx_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(tracr.MissingExtra, match=r"networkx(?s:.)*pip install 'tracr\[graph\]'"):
        compiled("hist").ground_truth.to_networkx()
