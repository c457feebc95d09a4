"""`natural.decoys`: variables that are computed and that no output reads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import all_inputs, compile_quietly, load_compiled
from tracr import natural
from tracr.errors import TracrError
from tracr.ground_truth.data import Edge
from tracr.rasp import programs, rasp

IS_A = rasp.Map(lambda x: x == "a", rasp.tokens).named("is_a")
ASSUMED = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE), rasp.tokens)
DECOYS: dict[str, list[Any]] = {
    "one": [programs.make_reverse(rasp.tokens)],
    "several": [programs.make_reverse(rasp.tokens), IS_A, programs.make_frac_prevs(rasp.tokens == "b")],
    "the input": [rasp.indices],
    "reads the output": [rasp.Map(lambda count: count > 1, programs.make_hist()).named("repeated")],
}


def reaching(model: tracr.CompiledModel) -> set[str]:
    """The nodes from which a path leads to the unembedding."""
    found, edges = {"unembed"}, model.ground_truth.edges()
    while more := {edge.source for edge in edges if edge.target in found} - found:
        found |= more
    return found


def decoy_edges(model: tracr.CompiledModel) -> list[Edge]:
    """The edges that lead to no output."""
    live = reaching(model)
    return [edge for edge in model.ground_truth.edges() if edge.target not in live]


def assert_decoys_hold(model: tracr.CompiledModel, made: tracr.CompiledModel, inputs: Sequence[Any]) -> None:
    """The answers are the model's, only its outputs are read, and ablating all edges of decoys changes nothing."""
    answers = model(inputs)
    assert made(inputs) == answers
    assert made.verify()
    assert [output.name for output in made.outputs] == [output.name for output in model.outputs]
    read = {edge.variable for edge in made.ground_truth.edges() if edge.target == "unembed"}
    assert read == {variable.label for _, variable in made.circuit.outputs}
    edges = decoy_edges(made)
    for ablation in ("zero", "resample"):
        assert made.ground_truth.ablate(edges, data=inputs, ablation=ablation) == answers
        for edge in edges:
            assert made.ground_truth.ablate([edge], data=inputs, ablation=ablation) == answers


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("added", DECOYS.values(), ids=DECOYS)
def test_decoys_are_computed_and_not_read(level: int, added: list[Any]) -> None:
    """Every decoy has dimensions that hold its value; nothing of it reaches the outputs."""
    model = tracr.compile(programs.make_hist(), "ab", 3, level=level)
    made = natural.decoys(model, added)
    assert_decoys_hold(model, made, all_inputs("ab", 3)[1:])
    assert made.options.level == level
    assert made.parameters.W_U.shape[1] == model.parameters.W_U.shape[1]
    for decoy in added:
        slots = made.residual.indices(decoy.name)
        held = made.run("aba")[f"blocks.{made.n_layers - 1}.hook_resid_post"][0, 1:4][:, slots]
        values = decoy("aba")
        codes = made.residual.of(decoy.name)
        if len(codes) > 1:
            assert [codes[row.argmax()].value for row in held] == values
        else:
            assert np.allclose(held[:, 0], np.array(values, dtype=float), atol=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_random_decoys(seed: int) -> None:
    """Random programs as decoys of random programs."""
    given: dict[str, Any] = {"vocab": "ab", "max_seq_len": 3, "causal": bool(seed % 2)}
    first, second = (tracr.random_program([seed, part], max_ops=3, **given) for part in (1, 2))
    model = compile_quietly(first, **given, level=seed // 2 % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = natural.decoys(model, second)
    assert decoy_edges(made)
    assert_decoys_hold(model, made, all_inputs("ab", 3)[1:])


def test_decoys_have_edges_of_their_own_and_are_not_minimal() -> None:
    """The decoy's nodes and edges are ground truth; a minimal circuit leaves them out."""
    made = natural.decoys(tracr.compile(programs.make_hist(), "ab", 3), DECOYS["several"])
    edges = decoy_edges(made)
    assert {edge.variable for edge in edges} >= {"tokens", "indices", "length", "opposite"}
    written = {
        one.variable for node in made.ground_truth.nodes() if node.id not in reaching(made) for one in node.writes
    }
    assert written >= {"reverse", "is_a", "frac_prevs"}
    circuit = made.ground_truth.minimal(data=all_inputs("ab", 3)[1:])
    assert set(edges) <= set(circuit.outside)


def test_decoys_can_be_saved(tmp_path: Path) -> None:
    """A loaded model has the decoys, their labels and the same ground truth."""
    made = natural.decoys(tracr.compile(programs.make_hist(), "ab", 3), DECOYS["several"])
    made.save(tmp_path / "saved")
    loaded = load_compiled(tmp_path / "saved")
    assert loaded.ground_truth.to_json() == made.ground_truth.to_json()
    assert [one.label for one in loaded.residual] == [one.label for one in made.residual]
    for (name, array), (_, other) in zip(made.parameters.named(), loaded.parameters.named(), strict=True):
        assert np.array_equal(array, other), name


def test_variants_of_a_model_with_decoys() -> None:
    """It is a compiled model: it can be rotated, and several outputs stay several."""
    model = tracr.compile([programs.make_hist(), IS_A], "ab", 3)
    made = natural.decoys(model, DECOYS["one"])
    assert made("aba") == model("aba")
    assert made.rotated(seed=1)("aba") == model("aba")


def test_two_programs_in_one_model_read_them() -> None:
    """`tracr.compile([a, b])`: the same variables, read by a second output."""
    both = tracr.compile([programs.make_hist(), IS_A], "ab", 3)
    assert not decoy_edges(both)


HIST = tracr.compile(programs.make_hist(), "ab", 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "added", "says"),
    [
        (3, IS_A, "compiled model"),
        (HIST, [], "no decoy"),
        (HIST, 3, "s-op"),
        (HIST, [programs.make_hist()], "by the program itself"),
        (HIST, [rasp.tokens], "by the program itself"),
        (HIST, [rasp.Full(3)], "constant"),
        (HIST, [ASSUMED], "not defined on all inputs"),
        (HIST, [rasp.ConstantSOp([1, 2])], "tokens"),
        (HIST.rotated(seed=0), [IS_A], "model.plain"),
        (tracr.compile(programs.make_hist(), "ab", 3, level=2), [IS_A], "level 2"),
        (tracr.compile(programs.make_hist(), "ab", 3, passes={"fold": True}), [IS_A], "fold"),
    ],
)
def test_refused(model: Any, added: Any, says: str) -> None:
    """What has no decoys, and what cannot be one."""
    with pytest.raises(TracrError, match=says) as error:
        natural.decoys(model, added)
    assert error.value.diagnostic.hint


def test_a_loaded_model_is_refused(tmp_path: Path) -> None:
    """It has tables, but no expressions."""
    HIST.save(tmp_path / "saved")
    with pytest.raises(TracrError, match="compile the program again"):
        natural.decoys(load_compiled(tmp_path / "saved").plain, IS_A)
