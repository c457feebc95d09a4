"""Circuits in the formats of other tools: names, round trips, and what is wrong with a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr import lab
from tracr.ground_truth.scores import EdgeKey
from tracr.lab import formats
from tracr.lab.formats import CircuitSizes, FoundCircuit
from tracr.lab.formats.eap_json import eap_json
from tracr.lab.methods import MethodData, exact_patching
from tracr.rasp import rasp

SIZES = [CircuitSizes(1, 1), CircuitSizes(2, 3, 7), CircuitSizes(4, 1), CircuitSizes(3, 6)]
RECORDED = json.loads((Path(__file__).parents[1] / "data" / "auto_circuit_2x2.json").read_text())
"""The edges of auto-circuit 1.0.1 for 2 layers of 2 heads, and its arrays with a different number for every edge."""


def all_edges(sizes: CircuitSizes) -> list[EdgeKey]:
    return [(str(site.writer), str(site.reader)) for site in sizes.sites.edges]


def drawn(sizes: CircuitSizes, seed: int) -> FoundCircuit:
    """Random scores, negative ones and ties too, for some edges; some of the edges chosen."""
    rng = np.random.default_rng(seed)
    edges = [edge for edge in all_edges(sizes) if rng.random() < 0.7] or all_edges(sizes)[:1]
    numbers = rng.choice([-1.5, 0.0, 1e-30, 0.1, 3e200, float(rng.normal())], size=len(edges)).tolist()
    return FoundCircuit(dict(zip(edges, numbers, strict=True)), frozenset(e for e in edges if rng.random() < 0.5))


def saved(folder: Path, content: Any, name: str = "circuit.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("naming", formats.NAMINGS)
def test_every_edge_has_one_name(naming: str, sizes: CircuitSizes) -> None:
    """Names are different, and each is read as its edge."""
    names = [formats.edge_name(edge, naming, sizes) for edge in all_edges(sizes)]
    assert len({*names}) == len(names)
    assert [formats.edge_key(name, naming, sizes) for name in names] == all_edges(sizes)


def test_names_are_those_of_auto_circuit() -> None:
    """All edges, and their places in its arrays, both ways."""
    sizes = CircuitSizes(2, 2)
    assert {formats.edge_name(edge, "auto-circuit", sizes) for edge in all_edges(sizes)} == {*RECORDED["edges"]}
    found = formats.from_prune_scores(RECORDED["prune_scores"], sizes)
    assert {formats.edge_name(e, "auto-circuit", sizes): x for e, x in found.scores.items()} == RECORDED["edges"]
    arrays = formats.to_prune_scores(found, sizes)
    assert {hook: array.tolist() for hook, array in arrays.items()} == RECORDED["prune_scores"]


def test_hooks_are_those_of_the_ground_truth() -> None:
    """The hooks of an edge at each granularity, but for the embeddings, which are one writer."""
    model = lab.case("hist2").model
    sizes = formats.sizes_of(model)
    for granularity in ("qkv", "head", "component"):
        for edge in model.ground_truth.edges(granularity):
            into = edge.target if edge.input == "in" else f"{edge.target}.{edge.input}"
            names = formats.edge_name((edge.source.removeprefix("pos_"), into), "transformer-lens", sizes).split("->")
            for name, place in zip(names, (edge.source_place, edge.target_place), strict=True):
                hook = place.hook if place.head is None else f"{place.hook}[:, :, {place.head}]"
                assert name == hook or (name, hook.replace("pos_", "")) == ("blocks.0.hook_resid_pre", "hook_embed")
            apart = f"{edge.source_place.hook}->{names[1]}"
            if edge.source in ("embed", "pos_embed"):
                assert formats.edge_key(apart, "transformer-lens", sizes) == ("embed", into)


def test_granularities_that_a_format_has() -> None:
    """Whole heads and layers have names in some formats only."""
    sizes = CircuitSizes(2, 2)
    assert formats.edge_name(("embed", "blocks.1.attn.1"), "auto-circuit", sizes) == "Resid Start->A1.1"
    assert formats.edge_key("blocks.0.hook_attn_out->blocks.1.hook_attn_in", "transformer-lens", sizes) == (
        "blocks.0.attn",
        "blocks.1.attn",
    )
    for edge, naming in ((("embed", "blocks.1.attn.1"), "eap"), (("blocks.0.attn", "unembed"), "auto-circuit")):
        with pytest.raises(tracr.errors.FormatError, match=f"{naming} has no name for"):
            formats.edge_name(edge, naming, sizes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_round_trips(sizes: CircuitSizes, seed: int, tmp_path: Path) -> None:
    """EAP files keep scores and choices, lists of edges one of them; graphs and arrays too."""
    circuit, path = drawn(sizes, seed), tmp_path / "circuit.json"
    formats.write(path, circuit, sizes)
    found = formats.read(path, sizes)
    assert (found.scores, found.chosen) == (circuit.scores, circuit.chosen)
    for naming in formats.NAMINGS:
        only = FoundCircuit(circuit.scores)
        if naming != "eap":
            formats.write(path, only, sizes, naming)
            assert (formats.read(path, sizes).scores, formats.read(path, sizes).chosen) == (circuit.scores, None)
            formats.write(path, FoundCircuit(chosen=circuit.chosen), sizes, naming)
            assert formats.read(path, sizes).chosen == circuit.chosen
    arrays = formats.to_prune_scores(circuit, sizes)
    again = formats.from_prune_scores(arrays, sizes).scores
    assert {edge: number for edge, number in again.items() if edge in circuit.scores} == circuit.scores
    assert all(number == 0 for edge, number in again.items() if edge not in circuit.scores)


@pytest.mark.parametrize("seed", range(4))
def test_graphs(seed: int) -> None:
    """A DiGraph has the circuit's edges, with paths through heads; it is read back."""
    networkx = pytest.importorskip("networkx")
    sizes = CircuitSizes(2, 2)
    circuit = drawn(sizes, seed)
    for one in (circuit, FoundCircuit(circuit.scores), FoundCircuit(chosen=circuit.chosen)):
        graph = formats.to_networkx(one)
        assert (formats.from_networkx(graph, sizes).scores, formats.from_networkx(graph, sizes).chosen) == (
            one.scores,
            one.chosen,
        )
        assert networkx.is_directed_acyclic_graph(graph)
    path = FoundCircuit({("embed", "blocks.0.attn.1.q"): 1, ("blocks.0.attn.1", "unembed"): 1})
    assert networkx.has_path(formats.to_networkx(path), "embed", "unembed")
    for wrong, why in (
        (networkx.MultiDiGraph(), "a circuit is a DiGraph"),
        (networkx.DiGraph([("embed", "blocks.7.mlp")]), "blocks.7.mlp has the layer 7, counted from 0, of 2"),
        (networkx.DiGraph([("embed", "unembed")]), "embed->unembed has neither score nor in_graph"),
        (networkx.DiGraph([("embed", "unembed", {"score": "x"})]), "embed->unembed has the score 'x'"),
        (networkx.DiGraph([("embed", "unembed", {"in_graph": "no"})]), "in_graph of embed->unembed is 'no'"),
        (networkx.DiGraph([("embed", "unembed", {"score": math.nan})]), "embed->unembed has the score nan"),
    ):
        with pytest.raises(tracr.TracrError, match=why):
            formats.from_networkx(wrong, sizes)


def eap(edges: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """An EAP circuit of 1 layer with 1 head."""
    cfg = {"n_layers": 1, "n_heads": 1, "parallel_attn_mlp": False, "d_model": 8}
    nodes = {name: {"in_graph": True} for name in ("input", "a0.h0", "m0", "logits")}
    return {"cfg": cfg, "nodes": nodes, "edges": edges, **changed}


def test_an_eap_file(tmp_path: Path) -> None:
    """As its writer gives it: with NaN for nodes without a score, and negative scores, which rank by absolute value."""
    edges = {"input->a0.h0<q>": {"score": -2.0, "in_graph": True}, "m0->logits": {"score": 1, "in_graph": False}}
    nodes = {
        "input": {"in_graph": True, "score": math.nan},
        "m0": {"in_graph": False, "neurons": [True]},
        "a0.h0": True,
    }
    found = formats.read(saved(tmp_path, eap(edges, nodes=nodes)), CircuitSizes(1, 1))
    query = ("embed", "blocks.0.attn.0.q")
    assert found.scores == {query: -2.0, ("blocks.0.mlp", "unembed"): 1.0}
    assert found.found() == {query: 2.0, ("blocks.0.mlp", "unembed"): 1.0}
    assert found.found(absolute=False) == found.scores
    assert found.found("in_graph") == frozenset({query})
    written = eap_json(found, CircuitSizes(1, 1, 8))
    assert written == eap(edges, nodes={n: {"in_graph": n in ("input", "a0.h0")} for n in eap({})["nodes"]})


QUERY = "input->a0.h0<q>"
GOOD = {"score": 1.0, "in_graph": True}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (eap({"input->a0.h1<q>": GOOD}), r"edges\['input->a0.h1<q>'\]: a0.h1<q> has the head 1, counted from 0, of 1"),
        (eap({"input->a5.h0<q>": GOOD}), "a5.h0<q> has the layer 5, counted from 0, of 1"),
        (eap({"input->a0.h0<x>": GOOD}), r"'a0.h0<x>' is no reader \(did you mean a0.h0<q>\?\)"),
        (eap({"input->a0.h00<q>": GOOD}), "'a0.h00<q>' is no reader"),
        (eap({"logits->m0": GOOD}), "'logits' is no writer"),
        (eap({"m0->a0.h0<k>": GOOD}), "m0 does not come before a0.h0<k>"),
        (eap({QUERY: GOOD, "input -> a0.h0<q>": GOOD}), "is an edge that occurs twice"),
        (eap({"input": GOOD}), "'input' is not the name of an edge"),
        (eap({QUERY: {"score": math.nan, "in_graph": True}}), r"edges\['input->a0.h0<q>'\].score is not a finite"),
        (eap({QUERY: {"score": math.inf, "in_graph": True}}), r"\.score is not a finite number"),
        (eap({QUERY: {"score": "1"}}), r"\.score is not a finite number"),
        (eap({QUERY: {"score": True}}), r"\.score is not a finite number"),
        (eap({QUERY: {"score": 1, "in_graph": 1}}), r"\.in_graph is not true or false"),
        (eap({QUERY: {}}), "has neither score nor in_graph"),
        (eap({QUERY: 0.5}), "is not a JSON object"),
        (eap({QUERY: {"score": 1, "weight": 1}}), "has unknown 'weight'"),
        (eap({QUERY: {"score": 1}, "m0->logits": {"in_graph": True}}), "some edges have score or in_graph"),
        (
            eap({QUERY: GOOD}, nodes={"m1": {"in_graph": True}}),
            r"nodes\['m1'\] is no node for n_layers = 1 and n_heads = 1",
        ),
        (eap({QUERY: GOOD}, nodes={"m0": {}}), r"nodes\['m0'\] lacks 'in_graph'"),
        (eap({QUERY: GOOD}, cfg={"n_heads": 1}), "cfg lacks 'n_layers'"),
        (
            eap({QUERY: GOOD}, cfg={"n_layers": 3, "n_heads": 1}),
            "n_layers is 3, and the number of the subject's layers is 1",
        ),
        (eap({QUERY: GOOD}, cfg={"n_layers": 1, "n_heads": 10**9}), "cfg cannot be read: 1 layers of 1,000,000,000"),
        (eap({QUERY: GOOD}, cfg={"n_layers": 1, "n_heads": 1, "parallel_attn_mlp": True}), "parallel_attn_mlp is true"),
        ({"edges": {QUERY: GOOD}}, "lacks 'cfg', 'nodes'"),
        ({"embed->unembed": 1, "embed->blocks.0.mlp": True}, "numbers for some edges and booleans for others"),
        ({"embed->unembed": 1, "embed -> unembed": 2}, "is an edge that occurs twice"),
        ({"A0.0->Resid End": None}, r"\['A0.0->Resid End'\] is not a finite number"),
        ({"A7.0->Resid End": 1}, "A7.0 has the layer 7"),
        ({"blocks.0.hook_mlp_out->blocks.3.hook_resid_post": 1}, "write blocks.0.hook_resid_post"),
        ([["embed"]], "'embed' is not the name of an edge"),
        ([1], r"\[0\] is not the name of an edge"),
        ("3", "is not a JSON object"),
        ("{", "is not JSON"),
        ('{"embed->unembed": 1, "embed->unembed": 2}', "a key that occurs twice: 'embed->unembed'"),
        ("[" * 100_000, "is nested too deep"),
        ('{"\\u001b[31mx": 1}', "is not the name of an edge"),
    ],
)
def test_problems_have_their_place(content: Any, problem: str, tmp_path: Path) -> None:
    """The error and the check name the file, the place and the problem."""
    path, sizes = saved(tmp_path, content), CircuitSizes(1, 1)
    with pytest.raises(tracr.errors.FormatError, match=problem) as raised:
        formats.read(path, sizes)
    assert "circuit.json" in str(raised.value)
    assert "\x1b" not in str(raised.value)
    truth = lab.case("hist").model.ground_truth
    checked = formats.check(path, truth, sizes)
    assert not checked.valid
    with pytest.raises(tracr.errors.FormatError, match=problem):
        formats.score(path, truth, sizes)


def test_all_problems_are_listed_up_to_many(tmp_path: Path) -> None:
    """One wrong edge hides no other; after 50 problems reading stops, whatever the file holds."""
    wrong = {f"nothing{number}->unembed": 1 for number in range(50_000)}
    few = dict(list(wrong.items())[:7])
    truth, sizes = lab.case("hist").model.ground_truth, CircuitSizes(1, 1)
    assert len(formats.check(saved(tmp_path, few), truth, sizes).problems) == 7
    problems = formats.check(saved(tmp_path, wrong), truth, sizes).problems
    assert len(problems) == 51
    assert problems[-1] == "reading stopped after 50 problems"
    with pytest.raises(tracr.errors.FormatError, match="and 46 more"):
        formats.read(saved(tmp_path, wrong), sizes)


@pytest.mark.parametrize("name", ["hist2", "reverse", "most_freq", "frac_prevs", "is_anbn"])
def test_files_score_as_the_method_does(name: str, tmp_path: Path) -> None:
    """Heads and MLPs that the model lacks are zeros in other tools: their edges are left out, whatever their scores."""
    case = lab.case(name)
    pairs = case.pairs(16)
    scores = exact_patching(case.model, MethodData.of(pairs, case.metric(pairs)))
    truth, sizes = case.model.ground_truth.minimal(pairs=pairs), formats.sizes_of(case.model)
    padding = {edge: 9.0 for edge in all_edges(sizes) if edge not in scores}
    full = FoundCircuit({**scores, **padding}, frozenset({*truth.alone, *padding}))
    path = tmp_path / "circuit.json"
    formats.write(path, full, sizes)
    found = formats.score(path, truth, sizes)
    assert (found.scores, found.padding) == (truth.score(scores), len(padding))
    assert formats.score(path, truth, sizes, by="in_graph").scores.exact
    for naming in ("tracr", "auto-circuit", "transformer-lens"):
        formats.write(path, FoundCircuit(full.scores), sizes, naming)
        for granularity in ("qkv", "head", "component"):
            expected = truth.score(scores, granularity)
            assert formats.score(path, truth, sizes, granularity=granularity).scores == expected


def test_notes_and_refusals(tmp_path: Path) -> None:
    """Missing candidates, equal scores and signs are told; coarse edges are refused at a fine granularity."""
    case = lab.case("hist")
    truth, sizes = case.model.ground_truth, formats.sizes_of(case.model)
    circuit = FoundCircuit({("embed", "unembed"): -1.0, ("blocks.0.mlp", "unembed"): 1.0}, frozenset())
    path = tmp_path / "circuit.json"
    formats.write(path, circuit, sizes)
    notes = " ".join(formats.check(path, truth, sizes).notes)
    assert "6 of 8 candidates have no score" in notes
    assert "all scores are equal" in notes
    assert "absolute value" in notes
    coarse = saved(tmp_path, {"embed->blocks.0.attn.0": 1.0})
    assert "is not an edge of the granularity qkv" in formats.check(coarse, truth, sizes).problems[0]
    assert formats.check(coarse, truth, sizes, granularity="head").valid
    empties: list[Any] = [{}, [], {"embed->unembed": False}]
    for empty in empties:
        assert "chooses none" in formats.check(saved(tmp_path, empty), truth, sizes).problems[0]
    for wrong in ("score", "in_graph"):
        with pytest.raises(tracr.errors.FormatError, match="the circuit"):
            FoundCircuit().found(wrong)
    with pytest.raises(tracr.errors.UnknownName, match="no format 'eep'"):
        formats.write(path, circuit, sizes, "eep")
    with pytest.raises(tracr.errors.FormatError, match="scores or a choice of edges, not both"):
        formats.write(path, circuit, sizes, "tracr")


def test_the_embedding_is_one_writer(tmp_path: Path) -> None:
    """Edges of the token and of the position embedding are parts of one edge; the larger score counts."""
    names = {"hook_embed->blocks.0.hook_mlp_in": 1.0, "hook_pos_embed->blocks.0.hook_mlp_in": 3.0}
    assert formats.read(saved(tmp_path, names), CircuitSizes(1, 1)).scores == {("embed", "blocks.0.mlp"): 3.0}


def test_a_model_without_layers(tmp_path: Path) -> None:
    """It has one edge, which hooks have no name for."""
    model = tracr.compile(rasp.tokens, vocab="ab", max_seq_len=3)
    sizes, path = formats.sizes_of(model), tmp_path / "circuit.json"
    circuit = FoundCircuit({("embed", "unembed"): 1.0})
    formats.write(path, circuit, sizes)
    assert formats.read(path, sizes).scores == circuit.scores
    with pytest.raises(tracr.errors.FormatError, match="no names for a model without layers"):
        formats.write(path, circuit, sizes, "transformer-lens")
    with pytest.raises(tracr.errors.FormatError, match="without layers"):
        formats.to_prune_scores(circuit, sizes)


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ({"blocks.9.hook_mlp_in": [0, 0]}, "is no hook that reads"),
        ({"blocks.0.hook_mlp_in": [0]}, r"not finite numbers of the shape \(2,\)"),
        ({"blocks.0.hook_mlp_in": [0, math.nan]}, "not finite numbers"),
        ({"blocks.0.hook_mlp_in": [[0], [0, 1]]}, "not finite numbers"),
        ({"blocks.0.hook_mlp_in": ["x", "y"]}, "not finite numbers"),
        ({"blocks.0.hook_q_input": [0]}, r"of the shape \(1, 1\)"),
    ],
)
def test_wrong_arrays(scores: dict[str, Any], why: str) -> None:
    """The error names the hook."""
    with pytest.raises(tracr.errors.FormatError, match=why):
        formats.from_prune_scores(scores, CircuitSizes(1, 1))
