"""`verify` finds what is wrong, and says where it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tracr
from tracr.ir.options import LEVELS
from tracr.ir.parameters import Parameters
from tracr.model.variants.variant_model import with_other_weights
from tracr.rasp import programs, rasp
from tracr.rasp.generate import random_program


def tampered(
    model: tracr.CompiledModel, layer: int, name: str, change: Callable[[np.ndarray], np.ndarray]
) -> tracr.CompiledModel:
    """The model with one weight matrix changed."""
    layers = list(model.parameters.layers)
    layers[layer] = replace(layers[layer], **{name: change(getattr(layers[layer], name))})
    parameters = replace(model.parameters, layers=tuple(layers))
    return replace(model, compilation=replace(model.compilation, parameters=parameters))


@pytest.mark.parametrize("name", programs.EXAMPLES)
@pytest.mark.parametrize("level", LEVELS)
def test_the_library_is_verified_on_all_inputs(name: str, level: int) -> None:
    """Every input, padded and not."""
    example = programs.EXAMPLES[name]
    found = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level).verify()
    assert found
    assert found.exhaustive
    assert "all agree" in str(found)


def test_a_sample_has_every_token_at_every_position() -> None:
    """Where there are too many inputs, a stratified sample of about the budget."""
    model = tracr.compile(programs.make_hist(), "abcdef", 12)
    found = model.verify(budget=5000)
    assert found
    assert not found.exhaustive
    assert 4000 <= found.inputs <= 6000
    from tracr.model.input_sets import _sample

    batches = list(_sample(6, 1, 12, 5000, 0))
    for length in range(1, 13):
        rows = np.concatenate([batch for batch in batches if batch.shape[1] == length])
        assert all(len(np.unique(rows[:, place])) == 6 for place in range(length))


def test_a_wrong_model_is_caught_with_the_shortest_input_and_the_first_wrong_variable() -> None:
    """A changed MLP of reverse: the variable it computes is named, not the output it spoils."""
    model = tracr.compile(programs.make_reverse(rasp.tokens), "abc", 5)
    wrong = tampered(model, 1, "W_out", lambda array: -array)
    found = wrong.verify()
    assert not found
    example = found.counterexample
    assert example is not None
    assert example.variable == model.schedule.layers[1].mlps[0].label
    assert len(example.tokens) <= 2
    assert example.expected == model(example.tokens)
    assert "MISMATCH" in str(found)


def test_padding_mistakes_are_caught() -> None:
    """A model that ignores PAD keys no longer passes, and the report says it was padded."""
    model = tracr.compile(programs.make_length(), "ab", 4)
    blind = tampered(model, 0, "W_K", lambda array: array * (np.array(model.residual.labels) != "tokens:pad")[:, None])
    found = blind.verify()
    assert found.counterexample is not None
    assert found.counterexample.padded


def test_inputs_on_which_the_program_raises_are_counted_apart() -> None:
    """Two equal strings have no mean."""
    model = tracr.compile(
        rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ), rasp.tokens), "ab", 3
    )
    found = model.verify()
    assert found
    assert (found.inputs, found.errors) == (4, 10)


def test_compile_can_verify() -> None:
    """`verify=True` returns a verified model."""
    assert tracr.compile(programs.make_hist(), "abc", 4, verify=True)("aab") == [2, 2, 1]


def test_a_budget_holds_for_large_vocabularies() -> None:
    """More tokens than the budget has inputs: a part of them is tried."""
    found = tracr.compile(programs.make_hist(), range(3000), 8).verify(200)
    assert found
    assert found.inputs <= 200


@pytest.mark.filterwarnings("ignore")
def test_all_lengths_together_are_compared_as_one_by_one() -> None:
    """Few inputs are compared in one batch: with random weights changed, it finds a fault if any length has one."""
    from tracr.model import verification

    rng = np.random.default_rng(0)
    faults = 0
    for seed in range(40):
        program = random_program(seed, vocab="ab", max_seq_len=3, max_ops=4, causal=seed % 5 == 0)
        model = tracr.compile(program, "ab", 3, causal=seed % 5 == 0, level=seed % 3)
        assert verification._all_right(model) == 0
        weights = dict(model.parameters.named())
        name = rng.choice([name for name, array in weights.items() if array.any()])
        changed = weights[name].copy()
        place = rng.choice(np.flatnonzero(changed))
        changed.flat[place] += rng.choice([-1.0, 0.5, 1e-9])
        other = with_other_weights(model, Parameters.of({**weights, name: changed}))
        batches = list(verification.chosen_inputs(other, 100, 0)[0])
        one_by_one = [verification._compare(other, codes)[0] for codes in batches]
        wrong = any(found is not None for found in one_by_one)
        assert (verification._all_right(other) is None) == wrong
        assert bool(other.verify()) is not wrong
        faults += wrong
    assert 5 < faults < 35


def test_long_inputs_are_not_one_batch() -> None:
    """One token has few inputs of many lengths: padded together they would take far more memory than one by one."""
    from tracr.model.input_sets import is_small

    model = tracr.compile(rasp.length, "x", 300)
    assert not is_small(model.program, 2_000)
    found = model.verify()
    assert (found.inputs, found.exhaustive) == (300, True)
    assert is_small(tracr.compile(rasp.length, "x", 80).program, 2_000)
