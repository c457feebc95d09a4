"""Variants: the same outputs, activations, interventions and ground truth, along other directions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import assert_agrees, same, some_inputs
from tests.library import compiled, masks
from tests.model.variants.making import EXACT, VARIANTS
from tests.strategies import Case, cases
from tests.tally import compile_case, inputs_for, mostly_compared
from tests.tiers import mostly_slow, pairwise, usual
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import evaluate_batch


@pytest.mark.parametrize(("name", "level", "variant"), pairwise(EXAMPLES, LEVELS, EXACT))
def test_decoded_outputs_are_the_same(name: str, level: int, variant: str) -> None:
    """On the library, in float32, bidirectional and causal, padded and not, as the interpreter says."""
    example = EXAMPLES[name]
    inputs = some_inputs(example.vocab, example.max_seq_len, 60)
    for causal in masks(name):
        model = VARIANTS[variant](compiled(name, level, causal))
        assert assert_agrees(model, example.program, inputs, reference=10) == len(inputs)
        assert model.verify(budget=200)


@pytest.mark.parametrize(("name", "variant"), mostly_slow(EXAMPLES, EXACT))
def test_logits_are_the_same_in_float64(name: str, variant: str) -> None:
    """To 1e-9, numbers that are huge aside: what differs in float32 is rounding."""
    model = compiled(name)
    ids, _, real = model.vocabulary.encode(some_inputs(EXAMPLES[name].vocab, EXAMPLES[name].max_seq_len, 30))
    before = model.logits(ids, np.float64)
    after = VARIANTS[variant](model).logits(ids, np.float64)
    for row, length in enumerate(real):
        assert np.allclose(before[row, 1 : length + 1], after[row, 1 : length + 1], rtol=1e-9, atol=1e-9)


DRAWN = given(case=cases(composite=True), level=st.sampled_from(LEVELS), variant=st.sampled_from(EXACT))


@pytest.mark.slow
@mostly_compared()
@settings(max_examples=usual(200, long=400), deadline=None)
@DRAWN
def test_random_programs(case: Case, level: int, variant: str) -> None:
    """Any program, in float32, by the kernel and by products of matrices; numbers without a list of values to 1e-4."""
    check(case, level, variant)


def check(case: Case, level: int, variant: str) -> None:
    """The variant gives the program's outputs."""
    model = compile_case(case, level=level)
    inputs = inputs_for(model, case, 12)
    evaluation = evaluate_batch(model.program, inputs)
    (expected,) = evaluation.outputs().values()
    other = VARIANTS[variant](model)
    for got in (other(inputs), other.run(inputs).decoded):
        for row, raises in enumerate(evaluation.errors):
            if not raises:
                assert all(same(a, b, 1e-4) for a, b in zip(got[row], expected[row], strict=True))


@pytest.mark.parametrize("variant", EXACT)
def test_activations_are_the_same_along_other_directions(variant: str) -> None:
    """Heads and neurons hold what they held; the residual stream does, read along its directions."""
    model = compiled("sort_freq")
    other = VARIANTS[variant](model)
    before, after = (m.run("abca", dtype=np.float64) for m in (model, other))
    for name, activation in before.items():
        if "hook_resid" in name or name in ("hook_embed", "hook_pos_embed") or name.endswith("_out"):
            assert after[name].shape[-1] == other.d_model
            assert np.allclose(other.coordinates(after[name]), activation, atol=1e-9), name
        elif not np.isinf(activation).any():
            assert np.allclose(after[name], activation, atol=1e-8), name


def test_the_directions_of_a_model_are_its_axes() -> None:
    """Of a compiled model `coordinates` changes nothing."""
    model = compiled("reverse")
    stream = model.run("abc")["blocks.0.hook_resid_post"]
    assert np.array_equal(model.directions, np.eye(model.d_model))
    assert np.array_equal(model.coordinates(stream), stream)
    assert model.plain is model


@pytest.mark.parametrize("variant", EXACT)
def test_weights_along_the_labels(variant: str) -> None:
    """`labelled` undoes rotations and layer norms, which is what figures and the explorer show."""
    model = compiled("hist2")
    found = VARIANTS[variant](model).labelled
    for (name, before), (_, after) in zip(model.parameters.named(), found.parameters.named(), strict=True):
        assert np.allclose(before, after, atol=1e-9), name
    noisy = model.rotated(1).with_noise(1e-3).labelled
    assert 0 < np.abs(noisy.parameters.W_E - model.parameters.W_E).max() < 1e-2


def test_figures_of_a_variant_are_the_models() -> None:
    """The residual stream read off by its labels, the weights along them."""
    pytest.importorskip("matplotlib")
    model = compiled("frac_prevs")
    for kind, tokens in (("stream", "xax"), ("weights", None)):
        first, second = (m.figure(kind, tokens) for m in (model, model.rotated(1).with_layer_norm()))
        words = [
            list(map(_text, figure.findobj(match=lambda artist: bool(_text(artist))))) for figure in (first, second)
        ]
        assert words[0] == words[1]
        assert "is_x" in words[0]


def _text(artist: Any) -> str:
    return str(artist.get_text()) if type(artist).__name__ == "Text" else ""


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("length", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_long_inputs(length: int, variant: str) -> None:
    """Many steps of a staircase, of all lengths, padded and not."""
    other = VARIANTS[variant](tracr.compile(programs.make_hist(), "abcd", length))
    assert other.verify(length)
    tokens = list("abca" * (length // 4))
    assert other.run([tokens, tokens[:5]]).decoded[0][:3] == [length // 2, length // 4, length // 4]


@pytest.mark.parametrize(("name", "variant"), mostly_slow(EXAMPLES, EXACT))
def test_values_at_bos_are_the_same_to_the_last_bit(name: str, variant: str) -> None:
    """Heads that add up weigh them 2**34 times as much as other values, so nothing may be off."""
    model = compiled(name)
    ids, _, _ = model.vocabulary.encode(some_inputs(EXAMPLES[name].vocab, EXAMPLES[name].max_seq_len, 10))
    seen: list[dict[str, np.ndarray]] = [{}, {}]
    for each, kept in zip((model, VARIANTS[variant](model)), seen, strict=True):
        each.logits(ids, hook=kept.__setitem__)
    for hook, values in seen[0].items():
        if hook.endswith("hook_v"):
            assert np.array_equal(values[:, 0], seen[1][hook][:, 0]), hook


@pytest.mark.parametrize("variant", VARIANTS)
def test_setting_a_variable(variant: str) -> None:
    """`run(set=)` writes along the variable's directions."""
    model = compiled("frac_prevs")
    other = VARIANTS[variant](model)
    for change in ({"is_x": [True, False, True]}, {"indices": [2, 1, 0]}, {"tokens": ["x", "a", "x"]}):
        expected = model.run("aab", set=change).decoded
        close = 2e-2 if variant == "noise" else 1e-3  # numbers are not rounded to values
        assert other.run("aab", set=change).decoded == pytest.approx(expected, abs=close)
    assert model.run("aab", set={"is_x": [True, False, True]}).decoded == [1.0, 0.5, 2 / 3]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_without_layers(variant: str) -> None:
    """The embedding is all there is."""
    model = VARIANTS[variant](tracr.compile(rasp.tokens, "ab", 2))
    assert model.n_layers == 0
    assert model("ba") == ["b", "a"]
    assert model.run("ba").decoded == ["b", "a"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_ground_truth_is_the_models_along_directions(variant: str) -> None:
    """The same nodes and edges; the JSON has a direction for each slot."""
    model = compiled("sort_freq")
    other = VARIANTS[variant](model)
    assert other.ground_truth.nodes() == model.ground_truth.nodes()
    assert other.ground_truth.edges() == model.ground_truth.edges()
    given, plain = (json.loads(m.ground_truth.to_json()) for m in (other, model))
    assert given.pop("variant") == list(other.variant.steps)
    directions = np.array(given.pop("directions"))
    assert directions.shape == (len(given["dimensions"]), other.d_model)
    assert np.array_equal(directions, other.directions)
    assert given == plain


@pytest.mark.parametrize(
    ("variant", "name", "ablation"),
    pairwise(EXACT, ("frac_prevs", "shuffle_dyck", "hist2"), ("zero", "mean", "resample")),
)
def test_minimal_circuits_are_the_same(name: str, ablation: str, variant: str) -> None:
    """Ablating an edge along its directions does to a variant what it does to the model."""
    model, example = compiled(name), EXAMPLES[name]
    data = some_inputs(example.vocab, example.max_seq_len, 20)
    other = VARIANTS[variant](model)
    before, after = (m.ground_truth.minimal(data=data, ablation=ablation) for m in (model, other))  # type: ignore[call-overload]
    assert after.inside == before.inside
    assert after.inert == before.inert
    edges = [before.inside[0]]
    for kept, again in zip(
        model.ground_truth.ablate(edges, data=data), other.ground_truth.ablate(edges, data=data), strict=True
    ):
        assert all(same(a, b, 1e-3) for a, b in zip(kept, again, strict=True))


def test_a_variant_says_what_was_done() -> None:
    """In the order in which it was."""
    model = tracr.compile(programs.make_hist(), "ab", 3).rotated(7).with_layer_norm().with_noise(1e-6)
    assert repr(model).endswith("level 1, rotated(seed=7), with_layer_norm(), with_noise(1e-06, seed=0))")
    assert repr(model.plain).endswith("level 1)")
    assert model.residual.labels == model.plain.residual.labels
