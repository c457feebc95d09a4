"""The one forward pass: activations beyond the usual ones, and layers of one size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.agreement import compile_quietly
from tracr.ir.parameters import Parameters
from tracr.rasp import programs
from tracr.runtime.forward import FINE, forward
from tracr.runtime.uniform import Sizes, common_sizes, uniform

NAMES = ("hist", "sort", "frac_prevs", "induction", "dyck1")


def model_of(name: str, **options: Any) -> Any:
    example = programs.EXAMPLES[name]
    return compile_quietly(example.program, example.vocab, example.max_seq_len, **options)


def activations(model: Any, ids: Any, parameters: Parameters | None = None, **options: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    weights = parameters or model.parameters
    forward(weights, ids, np, causal=model.options.causal, hook=seen.__setitem__, **options)
    return seen


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_finer_activations_change_nothing(name: str, causal: bool) -> None:
    """The activations per head do not change the others, and their sum is the attention's result."""
    model = model_of(name, causal=causal)
    ids = model.encode([list(model.options.vocab)[:3], list(model.options.vocab)[:2]])
    plain, fine = activations(model, ids), activations(model, ids, fine=FINE)
    for activation, array in plain.items():
        np.testing.assert_allclose(fine[activation], array, atol=1e-9, err_msg=activation)
    for number, layer in enumerate(model.parameters.layers):
        block = f"blocks.{number}."
        if layer.W_Q.shape[0]:
            np.testing.assert_allclose(
                fine[f"{block}attn.hook_result"].sum(axis=2) + layer.b_O, plain[f"{block}hook_attn_out"], atol=1e-9
            )
            for part in ("attn_in", "q_input", "k_input", "v_input"):
                for head in range(layer.W_Q.shape[0]):
                    assert (fine[f"{block}hook_{part}"][:, :, head] == plain[f"{block}hook_resid_pre"]).all()
        if layer.W_in.shape[1]:
            assert (fine[f"{block}hook_mlp_in"] == plain[f"{block}hook_resid_mid"]).all()


def test_a_head_alone_can_see_another_stream() -> None:
    """What a hook makes of one head's query input changes the query of that head and of no other."""
    model = model_of("induction")
    (layer, heads), *_ = [
        (number, len(layer.W_Q)) for number, layer in enumerate(model.parameters.layers) if len(layer.W_Q)
    ]
    ids = model.encode("abab")

    def blind(name: str, tensor: Any) -> Any:
        if name != f"blocks.{layer}.hook_q_input":
            return None
        tensor = np.array(tensor)
        tensor[:, :, 0] = 0
        return tensor

    seen: dict[str, Any] = {}

    def hook(name: str, tensor: Any) -> Any:
        changed = blind(name, tensor)
        seen[name] = tensor if changed is None else changed
        return changed

    forward(model.parameters, ids, np, causal=False, hook=hook, fine=FINE)
    clean = activations(model, ids, fine=FINE)
    weights = model.parameters.layers[layer]
    assert np.allclose(seen[f"blocks.{layer}.attn.hook_q"][:, :, 0], weights.b_Q[0])
    assert not np.allclose(clean[f"blocks.{layer}.attn.hook_q"][:, :, 0], weights.b_Q[0])
    for other in range(1, heads):
        assert (
            seen[f"blocks.{layer}.attn.hook_q"][:, :, other] == clean[f"blocks.{layer}.attn.hook_q"][:, :, other]
        ).all()
    assert (seen[f"blocks.{layer}.attn.hook_k"] == clean[f"blocks.{layer}.attn.hook_k"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_layers_of_one_size_compute_the_same(name: str) -> None:
    """Zeros fill a layer up, and scores divided by √d_head are what they were before, to the last bit."""
    model = model_of(name)
    ids = model.encode([list(model.options.vocab)[:3]])
    alike, scaled = uniform(model.parameters), uniform(model.parameters, scaled=True)
    sizes = common_sizes(model.parameters)
    assert {Sizes.of(layer) for layer in alike.layers} == {sizes}
    assert sizes.d_head in (1, 4, 16, 64, 256)
    np.testing.assert_allclose(activations(model, ids, alike)["logits"], activations(model, ids)["logits"], atol=1e-12)
    for ours, theirs in zip(alike.layers, scaled.layers, strict=True):
        assert (theirs.W_Q / np.sqrt(sizes.d_head) == ours.W_Q).all()
        assert (theirs.b_Q / np.sqrt(sizes.d_head) == ours.b_Q).all()


def test_named_weights_come_back() -> None:
    """`Parameters.of` is the inverse of `named`, in any order, from ten layers on too."""
    model = model_of("sort")
    layers = model.parameters.layers * 4
    deep = Parameters(model.parameters.W_E, model.parameters.W_pos, layers, model.parameters.W_U)
    again = Parameters.of(dict(sorted(deep.named())))
    for (name, array), (other, back) in zip(deep.named(), again.named(), strict=True):
        assert name == other
        assert array is back


@pytest.mark.parametrize("fine", [(), FINE])
def test_a_norm_stands_before_every_reader(fine: Any) -> None:
    """Attention, MLPs and the unembedding read the normalised stream; the stream itself is not changed."""
    model = model_of("sort")
    ids = model.encode([3, 1, 2])
    plain = activations(model, ids)
    normed = activations(model, ids, fine=fine, norm=lambda tensor, xp: tensor)
    assert {"blocks.1.ln1.hook_normalized", "blocks.1.ln2.hook_normalized", "ln_final.hook_normalized"} <= set(normed)
    for name, array in plain.items():
        np.testing.assert_allclose(normed[name], array, atol=1e-12, err_msg=name)
    readers = ("W_Q", "W_K", "W_V", "W_in", "W_U")
    halved = {name: array / 2 if name.endswith(readers) else array for name, array in model.parameters.named()}
    doubled = activations(model, ids, Parameters.of(halved), fine=fine, norm=lambda tensor, xp: 2 * tensor)
    np.testing.assert_allclose(doubled["logits"], plain["logits"], atol=1e-12)
