"""The ground truth is what the weights and the construction say, and survives ablation of everything else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

import tracr
from tests.agreement import same, some_inputs
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import Variable
from tracr.ground_truth.ablations import Ablation, Ablations
from tracr.ground_truth.circuits import MinimalCircuit, Reason
from tracr.ground_truth.data import GRANULARITIES, Attends, Edge, GroundTruth
from tracr.ir.circuit import Component
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp

ABLATIONS: tuple[Ablation, ...] = get_args(Ablation)
SCHEMA = Path(__file__).parents[2] / "docs" / "ground-truth.md"
Array = NDArray[Any]
library = pytest.mark.parametrize(
    "model",
    [pytest.param((name, level), id=f"{name}-{level}") for name in programs.EXAMPLES for level in (0, 1, 2)],
    indirect=True,
)
COMPILED: dict[tuple[str, int], tracr.CompiledModel] = {}


def compiled(name: str, level: int = 1) -> tracr.CompiledModel:
    if (name, level) not in COMPILED:
        example = programs.EXAMPLES[name]
        COMPILED[name, level] = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    return COMPILED[name, level]


@pytest.fixture
def model(request: pytest.FixtureRequest) -> tracr.CompiledModel:
    return compiled(*request.param)


def inputs(model: tracr.CompiledModel, count: int = 40) -> list[list[Any]]:
    return some_inputs(model.options.vocab, model.options.max_seq_len, count)


# What it is read off


Wire = tuple[str, str, str, tuple[int, ...], bool]


def by_construction(model: tracr.CompiledModel) -> set[Wire]:
    """(writer, reader, input, slots, cancelled) of every edge, from the maps of the construction, not the weights."""
    layout, circuit = model.layout, model.circuit
    slots_of = layout.slots
    writers: dict[int, list[tuple[str, Variable, bool]]] = {}  # who adds what to a slot; whether that was cancelled
    found: set[Wire] = set()

    def live(variable: Variable, used: Any) -> list[int]:
        return [int(s) for s, u in zip(slots_of.get(variable, ()), used, strict=False) if s >= 0 and u]

    def write(name: str, variable: Variable, used: Any) -> None:
        for slot in live(variable, used):
            assert all(cancelled for _, _, cancelled in writers.setdefault(slot, []))
            writers[slot].append((name, variable, False))

    def clear(name: str, variable: Variable, used: Any) -> None:
        for slot in live(variable, used):
            writers[slot] = [*((*earlier[:2], True) for earlier in writers[slot]), (name, variable, True)]

    def read(name: str, into: str, linear: LinearMap) -> None:
        slots = {slot for variable, block in linear.blocks.items() for slot in live(variable, block.any(axis=1))}
        carried: dict[tuple[str, Variable, bool], list[int]] = {}
        for slot in sorted(slots):
            for one in writers.get(slot, ()):
                carried.setdefault(one, []).append(slot)
        found.update((writer, name, into, tuple(held), gone) for (writer, _, gone), held in carried.items())

    for source in circuit.embedded:
        table = source.by_token if source.by_token is not None else source.by_position
        assert table is not None
        write("embed" if source.by_token is not None else "pos_embed", source.variable, table.any(axis=0))
    for variable in (BOS, PAD, ONE):
        write("embed", variable, np.ones(1))
    for number, layer in enumerate(layout.layers):
        sublayers: tuple[tuple[str, tuple[Component, ...]], ...] = (("attn", layer.heads), ("mlp", layer.mlps))
        for kind, components in sublayers:
            named = [(f"blocks.{number}.{kind}.{index}", component) for index, component in enumerate(components)]
            for name, component in named:
                names = ("q", "k", "v") if isinstance(component, Head) else ("in",)
                for into, linear in zip(names, component.maps, strict=True):
                    read(name, into, linear)
            for name, component in named:
                for variable, matrix in () if isinstance(component, Head) else component.clears:
                    clear(name, variable, matrix.any(axis=0))
            for name, component in named:
                for variable, matrix in component.writes:
                    write(name, variable, matrix.any(axis=0))
    total = LinearMap({}, 0)
    for linear in circuit.unembedded:
        total = total.beside(linear)
    read("unembed", "in", total)
    return found


def check_edges(model: tracr.CompiledModel) -> None:
    edges = model.ground_truth.edges()
    found = [(edge.source, edge.target, edge.input, edge.slots, edge.cancelled) for edge in edges]
    assert len(set(found)) == len(found)
    assert set(found) == by_construction(model)
    names = [(edge.source, edge.target, edge.input, edge.variable) for edge in edges]
    assert len(set(names)) == len(names)


@library
def test_edges_are_those_of_the_construction(model: tracr.CompiledModel) -> None:
    """What the weights say and what the compiler meant is the same."""
    check_edges(model)


def test_edges_follow_the_weights() -> None:
    """A head whose key weights for PAD are deleted has that edge no more."""
    model = compiled("hist")
    before = {str(edge) for edge in model.ground_truth.edges()}
    layer = model.parameters.layers[0]
    blind = layer.W_K * (np.array(model.residual.labels) != "tokens:pad")[:, None]
    changed = replace(model, changed=replace(model.parameters, layers=(replace(layer, W_K=blind),)))
    assert before - {str(edge) for edge in changed.ground_truth.edges()} == {"embed -> blocks.0.attn.0.k: tokens:pad"}


@library
def test_nodes_are_all_parts_and_say_what_they_compute(model: tracr.CompiledModel) -> None:
    """Every head and neuron is in one node; the variables that nodes write are those of `model.residual`."""
    truth = model.ground_truth
    nodes = {node.id: node for node in truth.nodes()}
    for number, layer in enumerate(model.parameters.layers):
        here = [node for node in nodes.values() if node.layer == number]
        assert [node.head for node in here if node.kind == "head"] == list(range(len(layer.W_Q)))
        ranges = [range(*node.neurons) for node in here if node.neurons is not None]
        assert [neuron for part in ranges for neuron in part] == list(range(len(layer.b_in)))
    for node in nodes.values():
        assert node.computes.endswith(".")
        for written in node.writes:
            assert written.expression
            for slot in written.slots:
                turns = [dimension for dimension in model.residual if dimension.index == slot]
                if node.clears:
                    assert any(node.id.startswith(f"blocks.{(one.until - 1) / 2:g}.mlp") for one in turns)
                else:
                    assert any(one.writer and node.id.startswith(one.writer) for one in turns)
    for edge in truth.edges():
        assert edge.variable in nodes[edge.source].variables
        assert dict(nodes[edge.target].inputs)[edge.input] == edge.target_place


@library
def test_granularities_are_the_same_edges(model: tracr.CompiledModel) -> None:
    """Coarser edges merge finer ones, and together carry the same slots into the same layers."""
    truth = model.ground_truth
    hooks = set(model.run(list(model.options.vocab[:1]) * model.program.lengths[0]))
    sizes = []
    for granularity in GRANULARITIES:
        nodes = {node.id: node for node in truth.nodes(granularity)}
        edges = truth.edges(granularity)
        sizes.append(len(edges))
        assert truth.finest(edges) == set(range(len(truth.edges())))
        for edge in edges:
            assert edge.source_place == nodes[edge.source].output
            assert edge.target_place == dict(nodes[edge.target].inputs)[edge.input]
            if not edge.source_place.hook.endswith("hook_result"):
                assert edge.source_place.hook in hooks
    assert sizes == sorted(sizes)


def test_fixed_positions() -> None:
    """A shift has an offset, the first token a position; heads that look at tokens or lengths have neither."""
    first = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 0), rasp.tokens)
    after = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q + 1), rasp.tokens)
    moved = rasp.Aggregate(
        rasp.Select(rasp.indices, (rasp.indices * 1 - 2).named("two"), rasp.Comparison.EQ), rasp.tokens
    )
    for program, expected in (
        (first, Attends(position=1)),
        (after, Attends(offset=1)),
        (moved, Attends(offset=-2)),
        (programs.make_reverse(rasp.tokens), None),
        (programs.make_hist(), None),
    ):
        truth = tracr.compile(program, "ab", 4).ground_truth
        (*_, head) = (node for node in truth.nodes() if node.kind == "head")
        assert head.attends == expected
        positions = {edge.positions for edge in truth.edges() if edge.target == head.id and edge.input == "v"}
        assert (positions == {None}) == (expected is None)
        assert all(edge.positions is None for edge in truth.edges() if edge.input != "v")
    causal = tracr.compile(first, "ab", 4, causal=True).ground_truth
    assert [n.attends for n in causal.nodes() if n.kind == "head"] == [Attends(position=1)]


# Ablation


def reference(model: tracr.CompiledModel, ablated: set[Edge], data: list[list[Any]], ablation: str) -> Array:
    """The logits with edges ablated, by a transformer of its own: every reader adds up what it is shown, in float64."""
    truth, weights = model.ground_truth, model.parameters
    ids, _, real = model.vocabulary.encode(data)
    nodes = truth.nodes()
    shown: dict[str, Array] = {}

    def run(cut: set[Edge], instead: dict[str, Array]) -> tuple[dict[str, Array], Array]:
        outputs: dict[str, Array] = {}

        def read(node: str, into: str) -> Array:
            total = sum(outputs.values())
            assert isinstance(total, np.ndarray)
            for edge in cut:
                if (edge.target, edge.input) == (node, into):
                    slots = list(edge.slots)
                    total[..., slots] += instead[edge.source][..., slots] - outputs[edge.source][..., slots]
            return total

        def head(node: Any, w: Any) -> Array:
            h = node.head
            q = read(node.id, "q") @ w.W_Q[h] + w.b_Q[h]
            k = read(node.id, "k") @ w.W_K[h] + w.b_K[h]
            v = read(node.id, "v") @ w.W_V[h] + w.b_V[h]
            scores = q @ k.transpose(0, 2, 1)
            pattern = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return np.asarray(pattern / pattern.sum(axis=-1, keepdims=True) @ v @ w.W_O[h])

        pending: dict[str, Array] = {}
        stage: object = None
        for node in nodes:
            if (node.kind, node.layer) != stage:
                stage = (node.kind, node.layer)
                outputs.update(pending)
                pending = {}
            if node.id == "embed":
                pending[node.id] = weights.W_E[ids]
            elif node.id == "pos_embed":
                pending[node.id] = np.broadcast_to(weights.W_pos[: ids.shape[1]], (*ids.shape, model.d_model))
            elif node.kind == "head":
                assert node.layer is not None
                pending[node.id] = head(node, weights.layers[node.layer])
            elif node.kind == "neurons":
                assert node.layer is not None
                assert node.neurons is not None
                w, part = weights.layers[node.layer], slice(*node.neurons)
                hidden = np.maximum(read(node.id, "in") @ w.W_in[:, part] + w.b_in[part], 0)
                pending[node.id] = hidden @ w.W_out[part]
            else:
                return outputs, read(node.id, "in") @ weights.W_U
        raise AssertionError

    clean, _ = run(set(), {})
    for name, tensor in clean.items():
        if ablation == "zero":
            shown[name] = np.zeros_like(tensor)
        else:
            means = np.zeros(tensor.shape[1:])
            for position in range(ids.shape[1]):
                rows = [r for r, n in enumerate(real) if position <= n]
                means[position] = tensor[rows, position].mean(axis=0)
            shown[name] = np.broadcast_to(means, tensor.shape)
    _, logits = run(ablated, shown)
    return logits


@pytest.mark.parametrize("name", ["hist2", "reverse", "sort_freq", "induction", "pair_balance", "shuffle_dyck"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_ablated_edges_are_invisible_to_their_reader_alone(name: str, level: int) -> None:
    """Random edges ablated in the forward pass, and in a transformer that adds up what each reader is shown."""
    model = compiled(name, level)
    data = inputs(model, 20)
    edges = model.ground_truth.edges()
    rng = np.random.default_rng(0)
    changed = 0
    for ablation in ("zero", "mean"):
        runs = Ablations(model.ground_truth, data, ablation, 0)
        for share in (0.0, 0.05, 0.1, 0.3):
            cut = [number for number in range(len(edges)) if rng.random() < share]
            stream = runs.run(frozenset(cut), runs.clean)
            expected = reference(model, {edges[number] for number in cut}, data, ablation)
            np.testing.assert_allclose(stream.logits[runs.token], expected[runs.token], atol=1e-3)
            changed += runs.changed(stream)
    assert changed


def near(first: Any, second: Any) -> bool:
    return same(first, second, 1e-4)


def check_minimal(model: tracr.CompiledModel, data: list[list[Any]], ablation: Ablation) -> MinimalCircuit:
    """Everything outside can go; nothing inside can, on top; what can go alone is listed as inert."""
    truth = model.ground_truth
    circuit = truth.minimal(ablation=ablation, data=data)
    assert {*circuit.inside, *circuit.outside} == set(truth.edges())
    assert len(circuit.inside) + len(circuit.outside) == len(truth.edges())
    runs = Ablations(truth, data, ablation, 0)
    number = {edge: place for place, edge in enumerate(truth.edges())}
    outside = frozenset(number[edge] for edge in circuit.outside)
    assert not runs.changed(runs.run(outside, runs.clean))
    for edge in circuit.inside:
        assert runs.changed(runs.run(outside | {number[edge]}, runs.clean)), f"{edge} is not needed"
    reasons = {inert.edge: inert.reason for inert in circuit.inert}
    for edge, place in number.items():
        assert runs.changed(runs.run(frozenset({place}), runs.clean)) == (edge not in reasons), edge
        if edge in reasons:
            assert reasons[edge] in get_args(Reason)
            assert (reasons[edge] == "redundant") == (edge in circuit.inside)
    return circuit


@library
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_the_minimal_circuit_is_enough_and_all_of_it_is_needed(model: tracr.CompiledModel, ablation: Ablation) -> None:
    """On the library: outputs stay when everything outside is ablated, and change with any edge more."""
    data = inputs(model, 24)
    circuit = check_minimal(model, data, ablation)
    kept = model.ground_truth.ablate(circuit.outside, data=data, ablation=ablation)
    pairs = zip(kept, model(data), strict=True)
    assert all(near(a, b) for one, other in pairs if one is not None for a, b in zip(one, other, strict=True))


@mostly_compared()
@given(case=cases(max_ops=6))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs(case: Case) -> None:
    """Edges and minimal circuits of random programs."""
    for level in LEVELS:
        model = compile_case(case, level=level)
        check_edges(model)
        for ablation in ABLATIONS:
            check_minimal(model, [*case.inputs(8), *case.inputs(3)], ablation)


def test_reasons() -> None:
    """What is inert, and why, on a program where it can be said by hand."""
    model = compiled("frac_prevs")
    data = inputs(model)

    def reasons(ablation: Ablation, data: list[list[Any]]) -> dict[str, str]:
        return {str(i.edge): i.reason for i in model.ground_truth.minimal(ablation=ablation, data=data).inert}

    zero = reasons("zero", data)
    assert zero["embed -> blocks.1.attn.0.q: tokens:bos"] == "bos_or_pad"
    assert zero["embed -> blocks.1.attn.0.k: tokens:pad"] == "bos_or_pad"  # earlier keys only: never padding
    assert "embed -> blocks.1.attn.0.k: tokens:bos" not in zero
    resampled = reasons("resample", data)
    assert resampled["pos_embed -> blocks.1.attn.0.q: indices"] == "constant"
    assert reasons("zero", [["a", "b"], ["b", "b"]])["blocks.0.mlp.0 -> blocks.1.attn.0.v: is_x"] == "constant"
    padded = model.ground_truth.minimal(ablation="zero", data=[["x"], ["a", "b"]])
    assert "saturated" in {inert.reason for inert in padded.inert}


def test_what_matters_depends_on_ablation_and_data() -> None:
    """The length is constant among inputs of one length; PAD matters only where there is padding."""
    model = compiled("length")
    assert model.ground_truth.minimal(ablation="resample", data=inputs(model)).inside == ()
    pad = "embed -> blocks.0.attn.0.k: tokens:pad"
    for data, needed in ((inputs(model), True), ([["a", "b"], ["b", "b"]], False)):
        circuit = model.ground_truth.minimal(ablation="zero", data=data)
        assert (pad in map(str, circuit.inside)) == needed


def test_inputs_on_which_the_program_raises_are_left_out() -> None:
    """They have no output that could change."""
    equal = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    truth = tracr.compile(rasp.Aggregate(equal, rasp.tokens), "ab", 3).ground_truth
    circuit = truth.minimal(ablation="zero", data=["ab", "aa", "ba"])
    assert (circuit.inputs, circuit.skipped) == (2, 1)
    assert truth.ablate((), ablation="zero", data=["ab", "aa"]) == [["a", "b"], None]
    with pytest.raises(tracr.InputError, match="raises on every input"):
        truth.minimal(data=["aa"])


def test_mistakes_are_named() -> None:
    """Unknown names and unusable data."""
    truth = compiled("hist").ground_truth
    with pytest.raises(tracr.TracrError, match=r"no granularity 'heads'[\s\S]*component, head, qkv, neuron_group"):
        truth.edges("heads")  # type: ignore[arg-type]
    with pytest.raises(tracr.TracrError, match=r"no ablation 'noise'[\s\S]*zero, mean, resample"):
        truth.minimal(ablation="noise", data=["ab"])  # type: ignore[call-overload]
    wrong: tuple[Any, ...] = ("ab", [])
    for data in wrong:
        with pytest.raises(tracr.InputError, match="list of inputs"):
            truth.minimal(data=data)
    with pytest.raises(tracr.InputError, match="without tokens"):
        truth.minimal(data=["ab", ""])
    with pytest.raises(tracr.InputError, match="same length"):
        truth.minimal(ablation="resample", data=["a", "ab"])
    with pytest.raises(tracr.TracrError, match="no edge"):
        truth.ablate([replace(truth.edges()[0], variable="nothing")], data=["ab", "ba"])


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
    validate(model.ground_truth, model.ground_truth.minimal(data=inputs(model)))


def test_a_program_without_layers_has_a_ground_truth() -> None:
    """An output that is the input: one edge, from the embedding to the unembedding."""
    truth = tracr.compile(rasp.tokens, "ab", 3).ground_truth
    assert [str(edge) for edge in truth.edges()] == ["embed -> unembed: tokens"]
    circuit = truth.minimal(data=["ab", "ba"])
    assert circuit.inside == truth.edges()
    validate(truth, circuit)


def test_several_outputs() -> None:
    """Each must stay what it is; the unembedding reads the variables of all."""
    hist, back = programs.make_hist().named("hist"), programs.make_reverse(rasp.tokens).named("back")
    model = tracr.compile({"hist": hist, "back": back, "again": back}, "ab", 3)
    read = {edge.variable for edge in model.ground_truth.edges() if edge.target == "unembed"}
    assert read == {"hist", "back"}
    data = inputs(model, 24)
    circuit = check_minimal(model, data, "zero")
    assert {edge.variable for edge in circuit.inside} >= read
    assert model.ground_truth.ablate(circuit.outside, data=data, ablation="zero") == model(data)


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
