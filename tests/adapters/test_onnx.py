"""ONNX files: any batch and length, read back with their labels, and not trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import load_compiled
from tracr.rasp import programs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

MODEL = tracr.compile(programs.EXAMPLES["reverse"].program, vocab="abc", max_seq_len=5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the model."""
    MODEL.to_onnx(tmp_path / "reverse.onnx")
    return tmp_path / "reverse.onnx"


def edit(path: Path, change: Any) -> None:
    """Change the file's content."""
    proto = onnx.load(path)
    change(proto)
    onnx.save(proto, path)


def test_batch_and_length_are_free(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One session runs inputs of any number and length, without a word of warning."""
    session = runtime.InferenceSession(path)
    for batch in (["a"], ["a", "b"]), (["a", "b", "c", "a", "b"],), (["c"],):
        ids = MODEL.encode(list(batch))
        (logits,) = session.run(None, {"ids": ids})
        assert MODEL.values(logits, ids) == MODEL(list(batch))
    assert capfd.readouterr().err == ""


def test_activations_have_their_names(path: Path) -> None:
    """Patterns and the residual stream can be asked for as outputs."""
    name = "blocks.3.attn.hook_pattern"
    edit(path, lambda proto: proto.graph.output.append(onnx.helper.make_empty_tensor_value_info(name)))
    ids = MODEL.encode("abc")
    (pattern,) = runtime.InferenceSession(path).run([name], {"ids": ids})
    np.testing.assert_allclose(pattern, MODEL.run("abc")[name], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_read_back(tmp_path: Path, dtype: str) -> None:
    """With labels, graph and program; its own weights, and float64 again."""
    MODEL.to_onnx(tmp_path / "model.onnx", dtype=dtype)
    loaded = load_compiled(tmp_path / "model.onnx")
    assert loaded.own_weights
    assert loaded.residual.labels == MODEL.residual.labels
    for (name, array), (_, back) in zip(MODEL.parameters.named(), loaded.parameters.named(), strict=True):
        assert np.array_equal(array, back), name
    assert loaded.verify()


def test_edited_weights_are_read_back_as_such(path: Path) -> None:
    """Weights changed in the file make a model with changed weights."""

    def swap(proto: Any) -> None:
        (tensor,) = [tensor for tensor in proto.graph.initializer if tensor.name == "unembed.W_U"]
        array = onnx.numpy_helper.to_array(tensor)[:, [1, 0, 2]]
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, "unembed.W_U"))

    edit(path, swap)
    loaded = load_compiled(path)
    assert not loaded.own_weights
    assert loaded("abc") == ["c", "a", "b"]
    assert load_compiled(path, recompile=True)("abc") == ["c", "b", "a"]
    loaded.to_onnx(path)
    assert not load_compiled(path).own_weights


def test_what_is_not_ours_is_refused(path: Path, tmp_path: Path) -> None:
    """No ONNX at all, one of somebody else, one that points to other files."""
    (tmp_path / "text.onnx").write_text("no")
    with pytest.raises(tracr.FormatError, match="was not written by"):
        load_compiled(tmp_path / "text.onnx")
    with pytest.raises(tracr.FormatError, match="is missing"):
        load_compiled(tmp_path / "nowhere.onnx")

    def point_elsewhere(proto: Any) -> None:
        proto.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL

    proto = onnx.load(path)
    point_elsewhere(proto)
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(tracr.FormatError, match="other files"):
        load_compiled(path)
    del proto.metadata_props[:]
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(tracr.FormatError):
        load_compiled(path)


def test_same_model_same_bytes(path: Path, tmp_path: Path) -> None:
    """Written twice, the file is the same."""
    MODEL.to_onnx(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Other types, and a folder in the way."""
    with pytest.raises(tracr.InputError, match="float16"):
        MODEL.to_onnx(tmp_path / "model.onnx", dtype=np.float16)
    with pytest.raises(tracr.FormatError, match="is a folder"):
        MODEL.to_onnx(tmp_path)
