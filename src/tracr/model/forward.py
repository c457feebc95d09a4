"""The one forward pass: a decoder-only transformer with ReLU and no layer norm, over any array namespace.

`hook(name, tensor)` is called with every activation under its TransformerLens name; what it returns takes the
activation's place (`None` leaves it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracr.model.parameters import LayerParameters, Parameters

__all__ = ["Hook", "forward"]

Tensor = Any
Hook = Callable[[str, Tensor], Tensor | None]
See = Callable[[str, Tensor], Tensor]


def forward(parameters: Parameters, ids: Tensor, xp: Any, *, causal: bool, hook: Hook | None = None) -> Tensor:
    """Logits [batch, position, d_vocab_out] for token ids [batch, position], BOS included."""

    def see(name: str, tensor: Tensor) -> Tensor:
        if hook is None:
            return tensor
        changed = hook(name, tensor)
        return tensor if changed is None else changed

    length = ids.shape[1]
    embed = see("hook_embed", parameters.W_E[ids])
    positions = see("hook_pos_embed", xp.broadcast_to(parameters.W_pos[:length], embed.shape))
    residual = embed + positions
    mask = xp.tril(xp.ones((length, length), dtype=bool)) if causal else None
    for number, layer in enumerate(parameters.layers):

        def here(name: str, tensor: Tensor, number: int = number) -> Tensor:
            return see(f"blocks.{number}.{name}", tensor)

        residual = here("hook_resid_pre", residual)
        attention = _attention(layer, residual, xp, mask, here) if layer.W_Q.shape[0] else xp.zeros_like(residual)
        residual = here("hook_resid_mid", residual + here("hook_attn_out", attention))
        neurons = _mlp(layer, residual, xp, here) if layer.W_in.shape[1] else xp.zeros_like(residual)
        residual = here("hook_resid_post", residual + here("hook_mlp_out", neurons))
    return see("logits", residual @ parameters.W_U)


def _attention(layer: LayerParameters, residual: Tensor, xp: Any, mask: Tensor, here: See) -> Tensor:
    heads, d_head = layer.b_Q.shape
    batch, length, width = residual.shape

    def project(weight: Tensor, bias: Tensor) -> Tensor:
        stacked = xp.moveaxis(weight, 0, 1).reshape(width, heads * d_head)
        return (residual @ stacked + bias.reshape(-1)).reshape(batch, length, heads, d_head)

    q = here("attn.hook_q", project(layer.W_Q, layer.b_Q))
    k = here("attn.hook_k", project(layer.W_K, layer.b_K))
    v = here("attn.hook_v", project(layer.W_V, layer.b_V))
    scores = xp.moveaxis(q, 2, 1) @ xp.swapaxes(xp.moveaxis(k, 2, 1), 2, 3)
    if mask is not None:
        scores = xp.where(mask, scores, -xp.inf)
    scores = here("attn.hook_attn_scores", scores)
    weights = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    pattern = here("attn.hook_pattern", weights / weights.sum(axis=-1, keepdims=True))
    z = here("attn.hook_z", xp.moveaxis(pattern @ xp.moveaxis(v, 2, 1), 1, 2))
    return z.reshape(batch, length, heads * d_head) @ layer.W_O.reshape(heads * d_head, width) + layer.b_O


def _mlp(layer: LayerParameters, residual: Tensor, xp: Any, here: See) -> Tensor:
    pre = here("mlp.hook_pre", residual @ layer.W_in + layer.b_in)
    post = here("mlp.hook_post", xp.maximum(pre, 0))
    return post @ layer.W_out + layer.b_out
