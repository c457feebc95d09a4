"""Twins in JAX and ONNX compute what the numpy twin does."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tracr
from tests.natural.twins import KINDS, batches, exact, inputs_of, students, untrained
from tracr.errors import FormatError, InputError, PrecisionError, TracrError
from tracr.natural.twin_model import TwinModel

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

STUDENTS = students()


@pytest.fixture(params=[(name, *kind) for name in STUDENTS for kind in KINDS], ids=str)
def twin(request: pytest.FixtureRequest) -> TwinModel:
    """Both masks, numbers, several outputs; each activation function, with and without layer norms."""
    name, activation, layer_norm, d_head = request.param
    return untrained(STUDENTS[name], activation, layer_norm=layer_norm, d_head=d_head)


def test_jax(twin: TwinModel) -> None:
    """Logits, answers, and every activation, under their names."""
    pytest.importorskip("jax")
    apply, params = twin.to_jax()
    for ids in batches(twin):
        expected, allowed = exact(twin, ids)
        np.testing.assert_allclose(apply(params, ids), expected, atol=allowed, rtol=0)
    inputs = inputs_of(twin)
    ids = twin.encode(inputs)
    assert twin.values(apply(params, ids), ids) == twin(inputs)
    assert {name: weight.shape for name, weight in params.items()} == {
        name: array.shape for name, array in twin.parameters.named()
    }
    run, seen = twin.run(inputs), {}
    apply(params, ids, lambda name, tensor: seen.update({name: np.asarray(tensor)}))
    assert list(seen) == list(run)
    for name, tensor in seen.items():
        np.testing.assert_allclose(tensor, run[name], rtol=1e-4, atol=1e-4, err_msg=name)


def test_jax_formats_and_gradients() -> None:
    """Compiled and differentiated; shorter formats and float64 without 64 bits are refused."""
    jax = pytest.importorskip("jax")
    twin = untrained(STUDENTS["hist"])
    apply, params = twin.to_jax()
    ids = twin.encode("abca")
    slopes = jax.grad(lambda params: (jax.jit(apply)(params, ids) ** 2).sum())(params)
    for name, slope in slopes.items():
        assert name.endswith("b_K") or np.abs(slope).max() > 0, name
    with pytest.raises(PrecisionError, match="nothing is known about it in bfloat16"):
        twin.to_jax(dtype="bfloat16")
    with pytest.raises(PrecisionError, match="float16"):
        apply({name: array.astype("float16") for name, array in params.items()}, ids)
    apply, params = twin.to_jax(dtype="bfloat16", check=False)
    assert apply(params, ids).dtype == "bfloat16"
    with pytest.raises(InputError, match="32 bits"):
        twin.to_jax(dtype=np.float64)
    with pytest.raises(InputError, match="the shape"):
        apply(params, ids[0])
    for options in ({"dtype": "int32"}, {"check": 1}):
        with pytest.raises(TracrError):
            twin.to_jax(**options)


def onnx() -> tuple[object, object]:
    """The two libraries; skips where one is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")


def test_onnx(twin: TwinModel, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Logits and answers for every batch and length, without a word of warning."""
    _, runtime = onnx()
    twin.to_onnx(tmp_path / "twin.onnx")
    session = runtime.InferenceSession(tmp_path / "twin.onnx")  # type: ignore[attr-defined]
    for ids in batches(twin):
        expected, allowed = exact(twin, ids)
        (logits,) = session.run(None, {"ids": ids})
        np.testing.assert_allclose(logits, expected, atol=allowed, rtol=0)
    inputs = inputs_of(twin)
    ids = twin.encode(inputs)
    (logits,) = session.run(None, {"ids": ids})
    assert twin.values(logits, ids) == twin(inputs)
    assert capfd.readouterr().err == ""


def test_activations_in_onnx(tmp_path: Path) -> None:
    """Every activation that the graph names is the twin's."""
    onnx_library, runtime = onnx()
    twin = untrained(STUDENTS["sort"])
    twin.to_onnx(tmp_path / "twin.onnx")
    proto = onnx_library.load(tmp_path / "twin.onnx")  # type: ignore[attr-defined]
    run = twin.run([1, 2, 3])
    names = [node.name for node in proto.graph.node if node.name in set(run)]
    assert {"blocks.0.ln1.hook_normalized", "ln_final.hook_normalized", "blocks.0.mlp.hook_post"} <= set(names)
    for name in names:
        if name != "logits":
            proto.graph.output.append(onnx_library.helper.make_empty_tensor_value_info(name))  # type: ignore[attr-defined]
    session = runtime.InferenceSession(proto.SerializeToString())  # type: ignore[attr-defined]
    for name, found in zip(names, session.run(names, {"ids": twin.encode([1, 2, 3])}), strict=True):
        np.testing.assert_allclose(
            np.broadcast_to(found, run[name].shape), run[name], rtol=1e-4, atol=1e-4, err_msg=name
        )


def test_what_onnx_files_lack_is_said(tmp_path: Path) -> None:
    """A twin is not loaded from ONNX."""
    onnx()
    twin = untrained(STUDENTS["hist"])
    with pytest.raises(TracrError, match="must be a path"):
        twin.to_onnx("")
    assert not list(tmp_path.iterdir())
    twin.to_onnx(tmp_path / "twin.onnx")
    with pytest.raises(FormatError, match="without its teacher and its measurements") as caught:
        tracr.load(tmp_path / "twin.onnx")
    assert "twin.save" in (caught.value.diagnostic.hint or "")
