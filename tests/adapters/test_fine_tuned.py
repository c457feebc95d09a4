"""Weights of a checkpoint that were trained further come back, with their labels, as changed weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tests.adapters.gpt2_in_numpy import logits
from tests.agreement import compile_quietly, load_compiled
from tests.library import masks
from tracr.adapters.huggingface.head import MARGIN, head_of
from tracr.rasp import programs
from tracr.rasp.programs import EXAMPLES

WEIGHTS = "model.safetensors"


def retrain(folder: Path, scale: float, dtype: Any = np.float32) -> None:
    """Change every weight a little, as training does: those of layer norms and of heads that are zeros, too."""
    rng = np.random.default_rng(0)
    weights = safetensors.numpy.load_file(folder / WEIGHTS)
    for name, array in weights.items():
        size = np.abs(array).max() if ".ln_" in name and name.endswith("weight") else 1.0
        weights[name] = (array + scale * size * rng.standard_normal(array.shape)).astype(dtype)
    safetensors.numpy.save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "transformers_version": "5"}))


NAMES = ["hist", "sort", "reverse", "frac_prevs", "induction", "count"]


@pytest.mark.parametrize(("name", "causal"), [(name, causal) for name in NAMES for causal in masks(name)])
def test_trained_weights_come_back(tmp_path: Path, name: str, causal: bool) -> None:
    """The loaded model has the logits of the checkpoint, keeps its labels, and is saved and loaded as it is."""
    example = EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, causal=causal)
    folder = tmp_path / "checkpoint"
    model.save_pretrained(folder, numbers="column")
    retrain(folder, 0.01)
    trained = load_compiled(folder)
    assert not trained.own_weights
    assert "changed weights" in repr(trained)
    assert trained.residual.labels == model.residual.labels
    assert [str(edge) for edge in trained.ground_truth.edges()] == [str(edge) for edge in model.ground_truth.edges()]
    tokens = [*example.vocab][: max(3, model.vocabulary.shortest)]
    ids = model.encode([tokens])
    found = logits(folder, ids)
    head = head_of(model.with_layer_norm(), model.outputs[0], "column")
    numbers = [number for _, number in head.decoded]
    if head.kind == "column":
        numbers, factor = [found.shape[-1] - 1, *numbers], 1.0
    else:
        factor = MARGIN
    got = trained.logits(ids, dtype=np.float64)
    np.testing.assert_allclose(got, found[..., numbers] / factor, rtol=2e-4, atol=2e-4)
    assert not np.allclose(got, model.logits(ids), atol=1e-3)
    trained.save(tmp_path / "saved")
    again = load_compiled(tmp_path / "saved")
    assert not again.own_weights
    np.testing.assert_array_equal(again.logits(ids, dtype=np.float64), got)


def test_weights_that_were_only_saved_again_are_its_own(tmp_path: Path) -> None:
    """transformers writes another config.json, and the same weights."""
    model = compile_quietly(EXAMPLES["sort"].program, EXAMPLES["sort"].vocab, 4)
    model.save_pretrained(tmp_path / "sort")
    retrain(tmp_path / "sort", 0.0)
    again = load_compiled(tmp_path / "sort")
    assert again.own_weights
    assert again([3, 1, 2]) == model([3, 1, 2])


def test_what_cannot_come_back_is_refused(tmp_path: Path) -> None:
    """Numbers read as classes, another architecture, gelu, weights that are not finite, a folder of another model."""
    folder = tmp_path / "model"
    model = compile_quietly(EXAMPLES["frac_prevs"].program, EXAMPLES["frac_prevs"].vocab, 4)

    def refused(match: str) -> None:
        with pytest.raises(tracr.FormatError, match=match):
            load_compiled(folder)

    model.save_pretrained(folder, numbers="classes")
    retrain(folder, 0.01)
    refused("reads as classes")
    model.save_pretrained(folder, numbers="column", activation="gelu_new", overwrite=True)
    retrain(folder, 0.01)
    refused("activation_function")
    model.save_pretrained(folder, numbers="column", overwrite=True)
    retrain(folder, float("inf"))
    refused("not finite")
    other = compile_quietly(EXAMPLES["hist"].program, EXAMPLES["hist"].vocab, 4)
    other.save_pretrained(tmp_path / "other")
    model.save_pretrained(folder, numbers="column", overwrite=True)
    (folder / WEIGHTS).write_bytes((tmp_path / "other" / WEIGHTS).read_bytes())
    refused("another model")
    (folder / WEIGHTS).write_bytes(b"nothing")
    refused("cannot be read")
    (folder / "tracr.json").unlink()
    refused("save the trained model into the folder")


def test_models_whose_layer_norms_matter_are_not_exported_without_them(tmp_path: Path) -> None:
    """ONNX files have no layer norms: right for compiled weights, which they do not change, wrong for trained ones."""
    pytest.importorskip("onnx")
    model = tracr.compile(programs.make_hist(), "abc", 4)
    model.save_pretrained(tmp_path / "hist")
    retrain(tmp_path / "hist", 0.01)
    with pytest.raises(tracr.TracrError, match="layer norms may change what it computes"):
        load_compiled(tmp_path / "hist").to_onnx(tmp_path / "x.onnx")
