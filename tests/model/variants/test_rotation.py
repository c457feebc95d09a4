"""Rotated models: no dimension has one label, and no trace of the labels is left."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tests.agreement import some_inputs
from tests.library import compiled
from tests.tally import NotCompared, Tally
from tracr.ir.options import LEVELS
from tracr.model.variants.exactness import Exactness
from tracr.rasp import programs
from tracr.rasp.programs import EXAMPLES


def alone(model: tracr.DesignedModel) -> list[str]:
    """The labels that have a dimension of their own."""
    write = model.directions != 0
    own = (write.sum(axis=1) == 1) & (write[:, write.sum(axis=0) == 1].sum(axis=1) == 1)
    return [label for label, single in zip(model.residual.labels, own.tolist(), strict=True) if single]


def test_dimensions_of_a_rotated_model_hold_several_labels() -> None:
    """Directions are orthonormal to the last bit; but for BOS and a share of attention no label has a dimension."""
    model = compiled("hist")
    one, other = model.rotated(1), model.rotated(2)
    assert np.array_equal(one.directions @ one.directions.T, np.eye(model.d_model))
    assert not np.allclose(one.directions, other.directions)
    assert np.array_equal(one.directions, model.rotated(1).directions)
    for rotated in (one, other):
        assert alone(rotated) == ["tokens:bos", "hist_share"]
        mixed = (rotated.directions != 0).sum(axis=0) > 1
        assert mixed.sum() == model.d_model - 2
        assert ((rotated.directions != 0).sum(axis=0)[mixed] >= 4).all()
        assert np.abs(rotated.directions[:, mixed]).max() <= 0.75


@pytest.mark.parametrize("name", ["shift_by", "detect_pattern", "counter", "nary_sequencemap", "frac_prevs"])
@pytest.mark.parametrize("level", LEVELS)
def test_no_label_has_a_dimension_where_nothing_is_sensitive(name: str, level: int) -> None:
    """Where codes and integers are all that is read before the output, every label is mixed."""
    for seed in range(3):
        assert alone(compiled(name, level).rotated(seed)) == []


@pytest.mark.parametrize("size", [300, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_large_vocabulary(size: int) -> None:
    """Squares of hundreds times a gap of 256 leave few bits: every token is right, by the kernel and without it."""
    model = tracr.compile(programs.make_hist(), range(size), 3)
    for seed in range(2):
        rotated = model.rotated(seed)
        every = [[token] for token in range(size)]
        assert rotated(every) == [[1]] * size
        assert rotated.run(every).decoded == [[1]] * size
        assert all(rotated([token]) == [1] for token in range(0, size, 7))
        assert rotated([5, 7, 5]) == [2, 1, 2]
        assert len(alone(rotated)) <= 2
        assert rotated.verify(300)


@pytest.mark.parametrize("level", LEVELS)
def test_exact_models_are_rotated_without_a_trace(level: int) -> None:
    """Where every label is exact, no bit of a query, key, value or neuron changes, whatever the batch."""
    with Tally(least=0.15) as tally:  # four programs
        for name in EXAMPLES:
            with tally.draw():
                check_rotated_without_a_trace(name, level)


def check_rotated_without_a_trace(name: str, level: int) -> None:
    model, example = compiled(name, level), EXAMPLES[name]
    if not Exactness(model).exact.all():
        raise NotCompared("some labels are not exact")
    other = model.rotated(level)
    for count in (1, 3, 50):  # BLAS has other ways for other shapes
        ids, _, _ = model.vocabulary.encode(some_inputs(example.vocab, example.max_seq_len, count))
        before: dict[str, np.ndarray] = {}
        after: dict[str, np.ndarray] = {}
        model.logits(ids, hook=before.__setitem__)
        other.logits(ids, hook=after.__setitem__)
        there = ids != model.vocabulary.pad_id
        for hook, values in before.items():
            if hook.endswith(("hook_q", "hook_k", "hook_v", "hook_pre")):
                assert np.array_equal(values[there], after[hook][there]), hook


def test_a_basis_with_too_few_bits_is_found_out() -> None:
    """Many rounds on a large vocabulary, or mixing what holds a share of attention: labels offend."""
    model = tracr.compile(programs.make_hist(), range(300), 3)
    exactness = Exactness(model)
    rng = np.random.default_rng(0)
    rotation = np.eye(model.d_model)
    for _ in range(8):
        groups = rng.permutation(model.d_model)[:304].reshape(-1, 4)
        rotation[:, groups] = rotation[:, groups] @ (np.full((4, 4), 0.5) - np.eye(4))
    assert exactness.offending(rotation, rotation.T)[:300].any()
    share = model.residual.labels.index("hist_share")
    single = np.eye(model.d_model)
    single[:, [0, 1, 2, share]] = single[:, [0, 1, 2, share]] @ (np.full((4, 4), 0.5) - np.eye(4))
    assert exactness.offending(single, single.T)[share]
    assert not exactness.offending(np.eye(model.d_model), np.eye(model.d_model)).any()
