"""Minimal circuits survive the ablation of everything else, and need all of their edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings

import tracr
from tests.agreement import inputs_of, same
from tests.ground_truth.construction import check_edges
from tests.library import compiled
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tests.tiers import pairwise
from tracr.ground_truth.ablations import Ablation, Ablations
from tracr.ground_truth.circuits import MinimalCircuit, Reason
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp

ABLATIONS: tuple[Ablation, ...] = get_args(Ablation)


def near(first: Any, second: Any) -> bool:
    return same(first, second, 1e-4)


def check_minimal(model: tracr.DesignedModel, data: list[list[Any]], ablation: Ablation) -> MinimalCircuit:
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


@pytest.mark.parametrize(("name", "level", "ablation"), pairwise(programs.EXAMPLES, LEVELS, ABLATIONS))
def test_the_minimal_circuit_is_enough_and_all_of_it_is_needed(name: str, level: int, ablation: Ablation) -> None:
    """On the library: outputs stay when everything outside is ablated, and change with any edge more."""
    model = compiled(name, level)
    data = inputs_of(model, 24)
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
    data = inputs_of(model)

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
    assert model.ground_truth.minimal(ablation="resample", data=inputs_of(model)).inside == ()
    pad = "embed -> blocks.0.attn.0.k: tokens:pad"
    for data, needed in ((inputs_of(model), True), ([["a", "b"], ["b", "b"]], False)):
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


def test_several_outputs() -> None:
    """Each must stay what it is; the unembedding reads the variables of all."""
    hist, back = programs.make_hist().named("hist"), programs.make_reverse(rasp.tokens).named("back")
    model = tracr.compile({"hist": hist, "back": back, "again": back}, "ab", 3)
    read = {edge.variable for edge in model.ground_truth.edges() if edge.target == "unembed"}
    assert read == {"hist", "back"}
    data = inputs_of(model, 24)
    circuit = check_minimal(model, data, "zero")
    assert {edge.variable for edge in circuit.inside} >= read
    assert model.ground_truth.ablate(circuit.outside, data=data, ablation="zero") == model(data)
