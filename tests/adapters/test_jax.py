"""The JAX function: pure, compiled, differentiated and mapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracr
from tracr.rasp import programs, rasp

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

jax = pytest.importorskip("jax")

MODEL = tracr.compile(programs.make_frac_prevs((rasp.tokens == "x").named("is_x")), vocab="abx", max_seq_len=4)


def test_jit_and_vmap() -> None:
    """Compiled, and mapped over inputs and over parameters."""
    apply, params = MODEL.to_jax()
    ids = MODEL.encode([list("xabx"), list("aaxx")])
    logits = apply(params, ids)
    np.testing.assert_allclose(jax.jit(apply)(params, ids), logits, atol=1e-6)
    mapped = jax.vmap(lambda row: apply(params, row[None])[0])(ids)
    np.testing.assert_allclose(mapped, logits, atol=1e-6)
    twice = jax.tree.map(lambda weight: np.stack([weight, 0 * weight]), params)
    both = jax.vmap(apply, in_axes=(0, None))(twice, ids)
    np.testing.assert_allclose(both[0], logits, atol=1e-6)
    assert not both[1].any()


def test_gradients_are_torchs() -> None:
    """The gradient of every weight, at kinks too, is the one PyTorch computes."""
    torch = pytest.importorskip("torch")
    module = MODEL.to_torch(dtype="float64")
    ids = MODEL.encode([list("xab"), list("aaxx")])
    module(torch.tensor(ids))[..., 0].sum().backward()
    with jax.enable_x64(True):
        apply, params = MODEL.to_jax(dtype=np.float64)
        found = jax.jit(jax.grad(lambda params: apply(params, ids)[..., 0].sum()))(params)
    assert any(gradient.any() for gradient in found.values())
    for name, weight in module.named_parameters():
        expected = np.zeros(weight.shape) if weight.grad is None else weight.grad.numpy()
        np.testing.assert_allclose(found[name], expected, atol=1e-9, err_msg=name)


def test_hooks_see_every_activation() -> None:
    """`hook(name, activation)` as in `model.run`; what it returns takes the activation's place."""
    apply, params = MODEL.to_jax()
    seen: dict[str, Any] = {}
    apply(params, MODEL.encode("xab"), hook=seen.__setitem__)
    run = MODEL.run("xab")
    assert list(seen) == list(run)
    for name, array in seen.items():
        np.testing.assert_allclose(array, run[name], atol=1e-6, err_msg=name)
    assert not apply(params, MODEL.encode("xab"), hook=lambda name, x: 0 * x if name == "logits" else None).any()


def test_trained_parameters_come_back() -> None:
    """A changed tree becomes a model with changed weights; an unchanged one keeps its own."""
    _, params = MODEL.to_jax()
    assert MODEL.with_weights(params).own_weights
    changed = {**params, "unembed.W_U": params["unembed.W_U"] * 0.5}
    back = MODEL.with_weights(changed)
    assert not back.own_weights
    assert back.logits(back.encode("xx"))[0, 1:, 0].tolist() == [0.5, 0.5]


def test_what_cannot_be_is_refused() -> None:
    """64 bits where JAX is set to 32, and ids that are no batch."""
    with pytest.raises(tracr.InputError, match="jax_enable_x64"):
        MODEL.to_jax(dtype=np.float64)
    apply, params = MODEL.to_jax()
    with pytest.raises(tracr.InputError, match="up to 5"):
        apply(params, np.zeros((1, 6), dtype=int))
