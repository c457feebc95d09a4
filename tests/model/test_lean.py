from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import tracr
from tracr.model.forward import forward
from tracr.model.lean import Lean
from tracr.model.parameters import LayerParameters
from tracr.rasp.programs import EXAMPLES


def _ids(model: tracr.CompiledModel) -> np.ndarray:
    """Random inputs with BOS in front, some of them padded."""
    rng = np.random.default_rng(0)
    vocabulary = model.vocabulary
    ids = rng.integers(len(vocabulary.tokens), size=(40, 1 + vocabulary.longest))
    ids[:, 0] = vocabulary.bos_id
    ids[20:, -1] = vocabulary.pad_id
    return ids


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["hist", "frac_prevs", "sort_freq", "dyck1", "detect_pattern", "closer"])
def test_is_the_forward_pass(name: str, causal: bool, level: int) -> None:
    example = EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, causal, level)
    ids = _ids(model)
    parameters = model.cast(np.float32)
    np.testing.assert_allclose(
        Lean(parameters)(ids, causal=causal), forward(parameters, ids, np, causal=causal), atol=1e-6
    )


@pytest.mark.parametrize("causal", [False, True])
def test_weights_without_zeros(causal: bool) -> None:
    model = tracr.compile(EXAMPLES["sort"].program, EXAMPLES["sort"].vocab, 4, causal).with_noise(0.1)
    ids = _ids(model)
    expected = forward(model.parameters, ids, np, causal=causal)
    np.testing.assert_allclose(Lean(model.parameters)(ids, causal=causal), expected, atol=1e-9)
    np.testing.assert_allclose(model.logits(ids, np.float64), expected, atol=1e-9)


def test_weights_that_are_all_zero() -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 4)
    zeros = model.parameters.map(np.zeros_like)
    assert not Lean(zeros)(_ids(model), causal=False).any()


def test_biases_are_written_where_no_weight_is() -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 4)
    first = model.parameters.layers[0]
    layer = {field.name: np.zeros_like(getattr(first, field.name)) for field in fields(LayerParameters)}
    layer["b_O"], layer["b_out"] = layer["b_O"] + 1, layer["b_out"] + 2
    biased = replace(model.parameters, layers=(LayerParameters(**layer),))
    ids = _ids(model)
    np.testing.assert_allclose(Lean(biased)(ids, causal=False), forward(biased, ids, np, causal=False))


def test_a_batch_in_parts_is_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tracr.compile(EXAMPLES["reverse"].program, "abc", 5)
    ids = _ids(model)
    whole = model.logits(ids)
    monkeypatch.setattr("tracr.model.compiled.CHUNK", 1)
    np.testing.assert_array_equal(model.logits(ids), whole)
