"""The forward pass: a stack of attention and MLPs, causal or not, for numpy, JAX or torch.

`xp` is numpy, torch, or `jax.numpy` with the `relu` and `softmax` of `jax.nn`. The pass uses the frameworks' own `relu`
because of its derivative: it is 0 at 0, where compiled neurons often are; the derivative of `maximum` would be 1/2.

`hook(name, tensor)` is called with every activation under its TransformerLens name. Its result replaces the activation;
`None` leaves it unchanged. `fine` adds activations that cost more: the residual stream as each head and each of its
inputs sees it, and the result of each head. `norm(tensor, xp)`, if given, is a layer norm before every attention, every
MLP and the unembedding. `activation(tensor)` is the neurons' function, by default ReLU.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import LayerParameters, Parameters

__all__ = ["FINE", "Hook", "forward", "pattern_of"]

Tensor = Any
Hook = Callable[[str, Tensor], Tensor | None]
See = Callable[[str, Tensor], Tensor]
Normalise = Callable[[Tensor], Tensor]

FINE = frozenset({"attn_in", "qkv_input", "result", "mlp_in"})


def forward(
    parameters: Parameters,
    ids: Tensor,
    xp: Any,
    *,
    causal: bool,
    hook: Hook | None = None,
    fine: Collection[str] = (),
    norm: Callable[[Tensor, Any], Tensor] | None = None,
    activation: Callable[[Tensor], Tensor] | None = None,
    start: int | None = None,
    stop: int | None = None,
) -> Tensor:
    """Logits [batch, position, d_vocab_out] for token ids [batch, position], BOS included.

    With `start` the pass begins with that layer, and `ids` is the residual stream before it. With `stop` it ends before
    that layer and returns the residual stream.
    """

    def see(name: str, tensor: Tensor) -> Tensor:
        if hook is None:
            return tensor
        changed = hook(name, tensor)
        return tensor if changed is None else changed

    def normed(name: str, tensor: Tensor) -> Tensor:
        return tensor if norm is None else see(f"{name}.hook_normalized", norm(tensor, xp))

    length = ids.shape[1]
    if start is None:
        embed = see("hook_embed", parameters.W_E[ids])
        residual = embed + see("hook_pos_embed", xp.broadcast_to(parameters.W_pos[:length], embed.shape))
    else:
        residual = ids
    mask = _lower_triangle(parameters.W_pos[:length, 0], xp) if causal else None
    for number, layer in list(enumerate(parameters.layers))[start:stop]:

        def here(name: str, tensor: Tensor, number: int = number) -> Tensor:
            return see(f"blocks.{number}.{name}", tensor)

        ln1, ln2 = partial(normed, f"blocks.{number}.ln1"), partial(normed, f"blocks.{number}.ln2")
        residual = here("hook_resid_pre", residual)
        heads = layer.W_Q.shape[0]
        attention = _attention(layer, residual, xp, mask, here, ln1, fine) if heads else xp.zeros_like(ln1(residual))
        residual = here("hook_resid_mid", residual + here("hook_attn_out", attention))
        size = layer.W_in.shape[1]
        act = activation or partial(_relu, xp)
        neurons = _mlp(layer, residual, act, here, ln2, fine) if size else xp.zeros_like(ln2(residual))
        residual = here("hook_resid_post", residual + here("hook_mlp_out", neurons))
    if stop is not None:
        return residual
    return see("logits", normed("ln_final", residual) @ parameters.W_U)


def _lower_triangle(column: Tensor, xp: Any) -> Tensor:
    """The causal mask [query, key], on the device of the tensor `column`."""
    return xp.tril(xp.ones_like(column[:, None] == column))


def _attention(
    layer: LayerParameters, residual: Tensor, xp: Any, mask: Tensor, here: See, ln1: Normalise, fine: Collection[str]
) -> Tensor:
    heads, d_head = layer.b_Q.shape
    batch, length, width = residual.shape

    def project(part: str, weight: Tensor, bias: Tensor) -> Tensor:
        if streams is not None:
            stream = here(f"hook_{part}_input", streams) if "qkv_input" in fine else streams
            return xp.einsum("bphd,hdk->bphk", ln1(stream), weight) + bias
        stacked = xp.moveaxis(weight, 0, 1).reshape(width, heads * d_head)
        return (seen @ stacked + bias.reshape(-1)).reshape(batch, length, heads, d_head)

    streams = seen = None
    if "attn_in" in fine or "qkv_input" in fine:
        streams = xp.broadcast_to(residual[:, :, None], (batch, length, heads, width))
        streams = here("hook_attn_in", streams) if "attn_in" in fine else streams
    else:
        seen = ln1(residual)
    q = here("attn.hook_q", project("q", layer.W_Q, layer.b_Q))
    k = here("attn.hook_k", project("k", layer.W_K, layer.b_K))
    v = here("attn.hook_v", project("v", layer.W_V, layer.b_V))
    scores = xp.moveaxis(q, 2, 1) @ xp.swapaxes(xp.moveaxis(k, 2, 1), 2, 3)
    if mask is not None:
        scores = xp.where(mask, scores, -xp.inf)
    scores = here("attn.hook_attn_scores", scores)
    pattern = here("attn.hook_pattern", _softmax(scores) if xp is np else xp.softmax(scores, -1))
    z = here("attn.hook_z", xp.moveaxis(pattern @ xp.moveaxis(v, 2, 1), 1, 2))
    if "result" in fine:
        return here("attn.hook_result", xp.einsum("bphk,hkd->bphd", z, layer.W_O)).sum(axis=2) + layer.b_O
    return z.reshape(batch, length, heads * d_head) @ layer.W_O.reshape(heads * d_head, width) + layer.b_O


def pattern_of(layer: LayerParameters, head: int, residual: NDArray[Any], *, causal: bool) -> NDArray[Any]:
    """The attention pattern [batch, query, key] of one head, from the residual stream before its layer; in numpy."""
    q, k = residual @ layer.W_Q[head] + layer.b_Q[head], residual @ layer.W_K[head] + layer.b_K[head]
    scores = q @ np.swapaxes(k, 1, 2)
    return _softmax(np.where(_lower_triangle(residual[0, :, 0], np), scores, -np.inf) if causal else scores)


def _softmax(scores: NDArray[Any]) -> NDArray[Any]:
    """The softmax over the last axis; that of float16 is computed in float32, as torch does."""
    wide = scores.astype(np.float32) if scores.dtype == np.float16 else scores
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True)).astype(scores.dtype, copy=False)


def _relu(xp: Any, tensor: Tensor) -> Tensor:
    return np.maximum(tensor, 0) if xp is np else xp.relu(tensor)


def _mlp(
    layer: LayerParameters, residual: Tensor, act: Normalise, here: See, ln2: Normalise, fine: Collection[str]
) -> Tensor:
    stream = here("hook_mlp_in", residual) if "mlp_in" in fine else residual
    pre = here("mlp.hook_pre", ln2(stream) @ layer.W_in + layer.b_in)
    post = here("mlp.hook_post", act(pre))
    return post @ layer.W_out + layer.b_out
