"""`natural.soften`: soft attention, and slopes in place of plateaus; the answers and the circuit stay."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import all_inputs, compile_quietly, load_compiled
from tests.tally import NotCompared, Tally
from tracr import natural
from tracr.errors import TracrError
from tracr.ir.softness import Softness
from tracr.model.verification import chosen_inputs
from tracr.natural.soft_errors import expected_of, wrong_rows
from tracr.natural.softening import _dimensions, _heads, compiled_with
from tracr.rasp import programs, rasp

PREVIOUS = rasp.Aggregate(
    rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1), rasp.tokens, default="a"
).named("previous")
PROGRAMS: dict[str, Any] = {
    "hist": programs.make_hist(),
    "reverse": programs.make_reverse(rasp.tokens),
    "previous": PREVIOUS,
    "frac_prevs": programs.make_frac_prevs(rasp.tokens == "a"),
    "several heads": rasp.SelectorWidth(
        rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
        | rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    ),
}
ERROR = 0.25


def edges_of(model: tracr.CompiledModel) -> list[tuple[Any, ...]]:
    """The edges without the positions that a head reads, which soft attention does not fix."""
    return [(edge.source, edge.target, edge.input, edge.variable, edge.slots) for edge in model.ground_truth.edges()]


def nodes_of(model: tracr.CompiledModel) -> list[tuple[Any, ...]]:
    return [(node.id, node.kind, node.writes, node.computes) for node in model.ground_truth.nodes()]


def code_error(soft: tracr.CompiledModel, model: tracr.CompiledModel, inputs: list[list[Any]]) -> float:
    """How far the one-hot codes of a softened model are from those of the model, at tokens, in any sub-layer."""
    codes = [one for one in model.layout.directions if not (one.variable.scratch or one.variable.numerical)]
    found, one, other = 0.0, soft.run(inputs), model.run(inputs)
    real = np.array([[False, *(place < len(xs) for place in range(one.logits.shape[1] - 1))] for xs in inputs])
    for time in range(2 * model.n_layers):
        slots = [direction.slot for direction in codes if direction.held(time)]
        if slots:
            hook = f"blocks.{time // 2}.hook_resid_{('mid', 'post')[time % 2]}"
            found = max(found, float(np.abs(one[hook] - other[hook])[real][:, slots].max(initial=0.0)))
    return found


def assert_softened(model: tracr.CompiledModel, soft: tracr.CompiledModel, inputs: list[list[Any]]) -> None:
    """The answers, nodes, edges and labels are the model's; the labels hold up to the error."""
    assert soft.verify()
    assert soft(inputs) == model(inputs)
    assert edges_of(soft) == edges_of(model)
    assert nodes_of(soft) == nodes_of(model)
    assert [one.label for one in soft.residual] == [one.label for one in model.residual]
    assert [array.shape for _, array in soft.parameters.named()] == [a.shape for _, a in model.parameters.named()]
    error = code_error(soft, model, inputs)
    assert error <= ERROR + 1e-6
    report = natural.softness(soft)
    assert report.exhaustive
    codes = [variable.label for variable in model.circuit.variables if not (variable.numerical or variable.scratch)]
    named = [report.errors[label] for label in codes if label in report.errors]
    assert abs(max(named, default=0.0) - error) < 1e-5


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_and_circuit_stay(name: str, level: int) -> None:
    """On all inputs; at least one head is soft."""
    model = tracr.compile(PROGRAMS[name], "ab", 4, level=level)
    soft = natural.soften(model)
    assert_softened(model, soft, all_inputs("ab", 4))
    report = natural.softness(soft)
    assert report.shown == "all inputs"
    assert min(report.gaps.values()) < 10


@pytest.mark.parametrize("name", ["hist", "reverse", 7022, 7028])
def test_no_smaller_gap_is_right(name: str | int) -> None:
    """A quarter less, and an answer is wrong or narrow, a code is off by more than allowed, or dimensions change."""
    if isinstance(name, str):
        model = tracr.compile(PROGRAMS[name], "ab", 4)
    else:
        given: dict[str, Any] = {"vocab": "abc", "max_seq_len": 3, "causal": False}
        program = tracr.random_program([name, 3], max_ops=5, min_selectors=1, **given)
        model = compile_quietly(program, **given, level=2)
    soft = natural.soften(model)
    chosen = soft.options.soft
    assert chosen is not None
    inputs = expected_of(model.program, chosen_inputs(model, 20_000, 0)[0])
    for labels in _heads(model):  # heads with one pattern have one gap
        gaps = {**dict(chosen.gaps), **dict.fromkeys(labels, chosen.gap_of(labels[0]) - 0.25)}
        smaller = compiled_with(model, replace(chosen, gaps=tuple(gaps.items())))
        wrong = any(wrong_rows(smaller, one, ERROR).any() for one in inputs)
        assert wrong or _dimensions(smaller) != _dimensions(model), labels


def attention(model: tracr.CompiledModel, tokens: str, layer: int) -> Any:
    return model.run(tokens)[f"blocks.{layer}.attn.hook_pattern"][0, 0]


def test_a_head_that_always_selects_gives_bos_no_attention() -> None:
    """`reverse` always finds its key. `previous` finds none for the first token, which gets the default from BOS."""
    soft = natural.soften(tracr.compile(PROGRAMS["reverse"], "ab", 4))
    pattern = attention(soft, "abba", soft.n_layers - 1)
    assert (pattern[1:, 0] == 0).all()
    assert 0.01 < pattern[1, 1] < 0.2
    shifted = attention(natural.soften(tracr.compile(PREVIOUS, "ab", 4)), "abba", 0)
    assert shifted[1, 0] > 0.7
    assert 0 < shifted[2, 0] < 0.3


def test_padding_changes_nothing() -> None:
    """PAD keys keep their distance: they get no attention at all."""
    soft = natural.soften(tracr.compile(PROGRAMS["hist"], "ab", 4))
    alone, padded = (soft.run(tokens).logits[0, :3] for tokens in (["a", "b"], ["a", "b", "pad", "pad"]))
    assert np.array_equal(alone, padded)


def test_every_step_of_hist_has_a_slope() -> None:
    """Between any two counts the code of the count changes with the share, at the shares that occur."""
    soft = natural.soften(tracr.compile(PROGRAMS["hist"], "ab", 4))
    layer, share = soft.parameters.layers[0], soft.residual.indices("hist_share")[0]
    stream = soft.run(all_inputs("ab", 4))["blocks.0.hook_resid_mid"][:, 1:].reshape(-1, soft.d_model)
    real = stream[stream[:, soft.residual.indices("tokens")].sum(axis=1) == 1].astype(np.float64)
    moved = real.copy()
    moved[:, share] += 1e-6
    codes = [np.maximum(rows @ layer.W_in + layer.b_in, 0) @ layer.W_out for rows in (real, moved)]
    assert (np.abs(codes[1] - codes[0]).max(axis=1) > 1e-6).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bound_decides_if_there_are_too_many_inputs(name: str) -> None:
    """The bound holds on all inputs; all heads have one gap, below the 13 to 16 of `tracr.compile(gap=...)`."""
    model = tracr.compile(PROGRAMS[name], "ab", 4)
    soft, inputs = natural.soften(model, budget=3), all_inputs("ab", 4)
    report = natural.softness(soft)
    assert report.shown == "bound"
    assert not report.slopes
    assert len(set(report.gaps.values())) == 1
    assert max(report.gaps.values()) < 13
    assert soft.verify()
    assert soft(inputs) == model(inputs)
    assert max(report.errors.values()) <= ERROR


def test_a_bound_for_a_model_with_many_inputs() -> None:
    """26 tokens, length 10: a gap of about 4, where `gap=` refuses less than 13."""
    model = tracr.compile(programs.make_hist(), "abcdefghijklmnopqrstuvwxyz", 10)
    soft = natural.soften(model)
    assert soft.verify(5000)
    assert natural.softness(soft, 500).gaps["hist_share"] < 5
    with pytest.raises(TracrError, match="gap"):
        tracr.compile(programs.make_hist(), "abcdefghijklmnopqrstuvwxyz", 10, gap=5)


def random_model(seed: int) -> tracr.CompiledModel:
    given: dict[str, Any] = {"vocab": "ab", "max_seq_len": 3, "causal": bool(seed % 2)}
    program = tracr.random_program([seed, 3], max_ops=4, min_selectors=1, **given)
    return compile_quietly(program, **given, level=seed % 3)


@pytest.mark.parametrize("budget", [20_000, 2], ids=["all inputs", "bound"])
@pytest.mark.parametrize("seeds", [range(9), pytest.param(range(9, 99), marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_programs(seeds: range, budget: int) -> None:
    """Softened on all inputs, and by the bound."""
    with Tally(0.7) as tally:
        for seed in seeds:
            with tally.draw():
                model = random_model(seed)
                try:
                    soft = natural.soften(model, budget=budget)
                except TracrError as refusal:
                    if "no attention" not in str(refusal):
                        raise
                    raise NotCompared(str(refusal)) from None
                assert soft.verify()
                if budget > 2:
                    assert edges_of(soft) == edges_of(model)
                assert natural.softness(soft).gaps or budget > 2


@pytest.mark.parametrize("name", ["hist", "reverse", "previous"])
def test_ablating_edges(name: str) -> None:
    """What is outside the hard model's minimal circuit changes no answer of the soft model; every edge inside does."""
    model, inputs = tracr.compile(PROGRAMS[name], "ab", 4), all_inputs("ab", 4)
    soft = natural.soften(model)
    circuit = model.ground_truth.minimal(data=inputs)
    by_key = dict(zip(edges_of(soft), soft.ground_truth.edges(), strict=True))

    def same(edges: Any) -> list[Any]:
        return [by_key[edge.source, edge.target, edge.input, edge.variable, edge.slots] for edge in edges]

    answers = model(inputs)
    assert soft.ground_truth.ablate(same(circuit.outside), data=inputs, ablation="resample") == answers
    for edge in same(circuit.inside):
        assert soft.ground_truth.ablate([edge], data=inputs, ablation="resample") != answers, edge


def test_saving_pickling_and_variants(tmp_path: Path) -> None:
    """A softened model is a compiled model; a loaded model can be softened too."""
    model = tracr.compile(PROGRAMS["reverse"], "ab", 3)
    soft = natural.soften(model)
    soft.save(tmp_path / "soft")
    for again in (load_compiled(tmp_path / "soft"), pickle.loads(pickle.dumps(soft))):
        assert again.options.soft == soft.options.soft
        assert str(natural.softness(again)) == str(natural.softness(soft))
        for (name, array), (_, other) in zip(soft.parameters.named(), again.parameters.named(), strict=True):
            assert np.array_equal(array, other), name
    model.save(tmp_path / "hard")
    again = natural.soften(load_compiled(tmp_path / "hard").plain)
    assert again.options.soft == soft.options.soft
    assert soft.rotated(seed=2).verify()
    assert soft.with_layer_norm().verify()
    run = soft.run("aba", set={"opposite": [0, 0, 1]})
    assert run.decoded == ["a", "a", "b"]


def test_a_damaged_softness_is_refused() -> None:
    """Gaps, slopes and errors out of range, and an unknown proof."""
    wrong: list[dict[str, Any]] = [{"gap": 0}, {"slopes": (("hist", 0.3),)}, {"error": -1.0}, {"shown": "no"}]
    for given in (*wrong, {"shown": "bound", "gaps": (("hist_share", 4.0),)}):
        with pytest.raises(TracrError, match="no such softness"):
            Softness(**given)


HIST = tracr.compile(PROGRAMS["hist"], "ab", 3)


@pytest.mark.parametrize(
    ("model", "given", "says"),
    [
        (3, {}, "compiled model"),
        (HIST.rotated(seed=0), {}, "other weights"),
        (natural.soften(HIST), {}, "already"),
        (tracr.compile(PROGRAMS["hist"], "ab", 3, gap=20), {}, "a gap of 20"),
        (tracr.compile(rasp.Map(lambda x: x == "a", rasp.tokens), "ab", 3), {}, "no attention"),
        (HIST, {"error": 0.5}, "at most 0.4"),
        (HIST, {"error": 0}, "error"),
        (HIST, {"budget": 0}, "budget"),
    ],
)
def test_refused(model: Any, given: Any, says: str) -> None:
    """What cannot be softened."""
    with pytest.raises(TracrError, match=says) as error:
        natural.soften(model, **given)
    assert error.value.diagnostic.hint


def test_softness_of_a_hard_model_is_refused() -> None:
    """It has none."""
    with pytest.raises(TracrError, match="not softened"):
        natural.softness(HIST)
