"""Exports hold the certified weights or not: by the digest of their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tracr.certificate import Certificate
from tracr.certificate.saving import read_certificate
from tracr.rasp import programs
from tracr.saving.models import load_compiled
from tracr_check import check_folder, main

MODEL = tracr.compile(programs.make_hist(), "abc", 3)


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return MODEL.certify()


def test_one_number_makes_the_difference(certificate: Certificate) -> None:
    """The same numbers in another format are covered; one number, name or shape that differs is not."""
    weights = dict(MODEL.cast("float32").named())
    assert certificate.covers(weights)
    assert certificate.covers({name: array.astype(np.float64) for name, array in weights.items()})
    changed = weights["blocks.0.mlp.W_in"].copy()
    changed[0, 0] = np.nextafter(changed[0, 0], np.float32(9))
    assert not certificate.covers({**weights, "blocks.0.mlp.W_in": changed})
    assert not certificate.covers({**weights, "more": np.zeros(1)})
    others: list[dict[Any, Any]] = [{**weights, 1: np.zeros(1)}, {**weights, "embed.W_E": weights["embed.W_E"] + 1j}]
    for other in others:
        with pytest.raises(tracr.InputError, match="no export"):
            certificate.covers(other)
    assert not certificate.covers({**weights, "blocks.0.mlp.b_in": weights["blocks.0.mlp.b_in"][None]})


def test_a_rejected_model_covers_nothing() -> None:
    """A certificate that was refused says nothing of any weights."""
    wrong = {name: array * 2 for name, array in MODEL.parameters.named()}
    found = MODEL.with_weights(wrong).certify()
    assert not found.accepted
    assert not found.covers(wrong)


def test_files_with_the_same_weights(
    certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tracr-check --export` compares a safetensors file with the folder."""
    MODEL.save(tmp_path / "model", certificate=True)
    weights = dict(MODEL.cast("float32").named())
    path = tmp_path / "export.safetensors"
    safetensors.numpy.save_file(weights, path)
    assert certificate.covers(path)
    assert main([str(tmp_path / "model"), "--export", str(path)]) == 0
    assert certificate.verdict.weights_sha256 in capsys.readouterr().out
    safetensors.numpy.save_file({**weights, "embed.W_E": weights["embed.W_E"] + 1}, path)
    assert not certificate.covers(path)
    assert main([str(tmp_path / "model"), "--export", str(path)]) == 1
    assert "the export holds other weights" in capsys.readouterr().out
    assert not check_folder(tmp_path / "model", exported=tmp_path / "none").accepted
    path.write_bytes(b"short")
    with pytest.raises(tracr.InputError, match="cannot be read"):
        certificate.covers(path)


def test_a_loaded_certificate_knows_the_weights(certificate: Certificate, tmp_path: Path) -> None:
    """The digest follows from the weights in the folder."""
    MODEL.save(tmp_path / "model", certificate=True)
    loaded = load_compiled(tmp_path / "model")
    read_certificate(loaded, tmp_path / "model")
    assert loaded.certificate is not None
    assert loaded.certificate.verdict.weights_sha256 == certificate.verdict.weights_sha256


def test_torch(certificate: Certificate) -> None:
    """`to_torch`, also in float64; not after a training step."""
    torch = pytest.importorskip("torch")
    assert certificate.covers(MODEL.to_torch())
    assert certificate.covers(MODEL.to_torch(dtype=torch.float64))
    module = MODEL.to_torch(trainable=True)
    with torch.no_grad():
        next(module.parameters()).add_(1e-3)
    assert not certificate.covers(module)


def test_onnx(certificate: Certificate, tmp_path: Path) -> None:
    """The initializers of the graph."""
    pytest.importorskip("onnx")
    MODEL.to_onnx(tmp_path / "model.onnx")
    assert certificate.covers(tmp_path / "model.onnx")
    other = tracr.compile(programs.make_hist(), "abc", 4)
    other.to_onnx(tmp_path / "other.onnx")
    assert not certificate.covers(tmp_path / "other.onnx")


def test_onnx_has_no_layer_norms(tmp_path: Path) -> None:
    """The file has the same weights; what is proved of them is proved of a network with norms."""
    pytest.importorskip("onnx")
    model = MODEL.with_layer_norm()
    certificate = model.certify()
    model.to_onnx(tmp_path / "model.onnx")
    assert certificate.covers(dict(model.cast("float32").named()))
    with pytest.raises(tracr.CertificateError, match="it has none"):
        certificate.covers(tmp_path / "model.onnx")


@pytest.mark.slow
def test_jax(certificate: Certificate) -> None:
    """The parameters that `to_jax` gives."""
    pytest.importorskip("jax")
    assert certificate.covers(MODEL.to_jax()[1])


def test_checkpoints_are_refused_with_the_reason(certificate: Certificate, tmp_path: Path) -> None:
    """A GPT-2 has layer norms; anything else is no export."""
    model = tracr.compile(programs.make_hist(), "abc", 3, causal=True)
    model.save_pretrained(tmp_path / "gpt2")
    for path in (tmp_path / "gpt2", tmp_path / "gpt2" / "model.safetensors"):
        with pytest.raises(tracr.CertificateError, match="layer norms"):
            certificate.covers(path)
    with pytest.raises(tracr.InputError, match="no export"):
        certificate.covers(3)
