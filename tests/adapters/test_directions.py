"""Streams of torch and JAX along the labels: coordinates, setting them and layer norms, in the kind that is given."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.rasp import programs

MODEL = tracr.compile(programs.make_hist(), vocab="abc", max_seq_len=5)
MODELS = [MODEL, MODEL.rotated(1), MODEL.with_layer_norm(), MODEL.rotated(1).with_layer_norm()]
IDS = ["compiled", "rotated", "layer norm", "both"]
HOOK = "blocks.0.hook_resid_post"
FRAMEWORK = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def torch_module() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch")


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_numpy_and_lists_give_numpy(model: tracr.CompiledModel) -> None:
    """Of the stream's type; integers and lists are taken as floats."""
    stream = model.run("abca")[HOOK]
    assert model.coordinates(stream).dtype == np.float32
    assert model.coordinates(stream.astype(np.float64)).dtype == np.float64
    ones = np.ones(model.d_model)
    assert np.allclose(model.coordinates([1] * model.d_model), model.coordinates(ones))
    assert np.allclose(model.coordinates(np.ones(model.d_model, int)), model.coordinates(ones))


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_what_reads_a_label(model: tracr.CompiledModel) -> None:
    """`read_directions` reads what `directions` writes, off the stream and off what a layer norm makes of it."""
    stream = model.run("abca", dtype=np.float64)[HOOK]
    labels = len(model.residual)
    assert model.read_directions.shape == (model.d_model, labels)
    assert np.allclose(model.directions @ model.read_directions, np.eye(labels))
    assert np.allclose(stream @ model.read_directions, model.coordinates(stream))
    assert np.allclose(model.normalised(stream) @ model.read_directions, model.coordinates(stream))
    other = stream + 3.0  # a mean that the norm takes away
    if model.norm:
        assert np.allclose(model.normalised(other) @ model.read_directions, model.coordinates(stream))


def test_no_framework_is_imported() -> None:
    """Reading numpy streams loads neither torch nor JAX."""
    code = (
        "import sys, tracr, numpy as np\n"
        "from tracr.rasp import programs\n"
        "model = tracr.compile(programs.make_hist(), 'ab', 3).with_layer_norm()\n"
        "model.coordinates(model.normalised(np.ones(model.d_model)))\n"
        "sys.exit('torch' in sys.modules or 'jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("model", MODELS, ids=IDS)
class TestTorch:
    """Torch in, torch out."""

    pytestmark = FRAMEWORK

    def test_values(self, model: tracr.CompiledModel) -> None:
        """The same numbers, types and devices; setting a coordinate leaves the others, and the stream given."""
        torch = torch_module()
        stream = model.run("abca")[HOOK]
        given = torch.tensor(stream)
        found = model.coordinates(given)
        assert isinstance(found, torch.Tensor)
        assert found.dtype == torch.float32
        np.testing.assert_allclose(found.numpy(), model.coordinates(stream), atol=1e-6)
        assert model.coordinates(given.to(torch.bfloat16)).dtype == torch.bfloat16
        assert model.coordinates(torch.empty(2, model.d_model, device="meta")).device.type == "meta"
        np.testing.assert_allclose(model.normalised(given).numpy(), model.normalised(stream), atol=1e-6)
        changed = model.basis.put(given, [1, 2], 5.0)
        np.testing.assert_allclose(changed.numpy(), model.basis.put(stream, [1, 2], 5.0), atol=1e-5)
        assert torch.equal(given, torch.tensor(stream))

    def test_derivatives(self, model: tracr.CompiledModel) -> None:
        """A label's derivative is what reads it."""
        torch = torch_module()
        stream = torch.zeros(model.d_model, dtype=torch.float64, requires_grad=True)
        model.coordinates(stream)[0].backward()
        np.testing.assert_allclose(stream.grad.numpy(), model.read_directions[:, 0])
        values = torch.ones(1, dtype=torch.float64, requires_grad=True)
        model.basis.put(stream.detach(), [0], values).sum().backward()
        np.testing.assert_allclose(values.grad.numpy(), model.directions[0].sum(), atol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=IDS)
class TestJax:
    """JAX in, JAX out."""

    pytestmark = FRAMEWORK

    def test_values_and_tracing(self, model: tracr.CompiledModel) -> None:
        """The same numbers, also when compiled and differentiated."""
        jax = pytest.importorskip("jax")
        stream = model.run("abca")[HOOK]
        given = jax.numpy.asarray(stream)
        for read in (model.coordinates, jax.jit(model.coordinates)):
            found = read(given)
            assert isinstance(found, jax.Array)
            np.testing.assert_allclose(np.asarray(found), model.coordinates(stream), atol=1e-6)
        np.testing.assert_allclose(np.asarray(jax.jit(model.normalised)(given)), model.normalised(stream), atol=1e-6)
        put = jax.jit(lambda held: model.basis.put(held, [1, 2], 5.0))
        np.testing.assert_allclose(np.asarray(put(given)), model.basis.put(stream, [1, 2], 5.0), atol=1e-5)
        slope = jax.grad(lambda held: model.coordinates(held)[0])(jax.numpy.zeros(model.d_model))
        np.testing.assert_allclose(np.asarray(slope), model.read_directions[:, 0])
