"""Runs saved weights in float32 with numpy, with sums in several orders: each conforms to the arithmetic float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ORDERS", "Order", "execute"]

Array = NDArray[Any]
Order = Callable[[Array, Array], Array]  # the product of [..., n, k] and [..., k, m]


def _reversed(a: Array, b: Array) -> Array:
    return np.asarray(a[..., ::-1] @ b[..., ::-1, :])


def _permuted(a: Array, b: Array) -> Array:
    order = np.random.default_rng(a.shape[-1]).permutation(a.shape[-1])
    return np.asarray(a[..., order] @ b[..., order, :])


def _one_by_one(a: Array, b: Array) -> Array:
    """From the first term to the last, each product and each sum rounded."""
    total = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.float32)
    for term in range(a.shape[-1]):
        total = total + a[..., term, None] * b[..., term, None, :]
    return total


def _fused(a: Array, b: Array) -> Array:
    """From the last term to the first, with products that are not rounded: fused multiply-adds."""
    total = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.float32)
    for term in reversed(range(a.shape[-1])):
        product = a[..., term, None].astype(np.float64) * b[..., term, None, :].astype(np.float64)
        total = (total + product).astype(np.float32)
    return total


def _blocked(a: Array, b: Array) -> Array:
    """Blocks of three terms, added in a tree."""
    cuts = [_one_by_one(a[..., at : at + 3], b[..., at : at + 3, :]) for at in range(0, a.shape[-1], 3)]
    while len(cuts) > 1:
        cuts = [sum(cuts[at + 1 : at + 2], start=cuts[at]) for at in range(0, len(cuts), 2)]
    return cuts[0] if cuts else _one_by_one(a, b)


ORDERS: dict[str, Order] = {
    "blas": lambda a, b: np.asarray(a @ b),
    "reversed": _reversed,
    "permuted": _permuted,
    "one by one": _one_by_one,
    "fused": _fused,
    "blocked": _blocked,
}
"""Orders of summation by name."""


def execute(
    weights: Mapping[str, Array],
    ids: Array,
    causal: bool,
    dot: Order,
    after: list[Array] | None = None,
    epsilon: float | None = None,
) -> Array:
    """Logits for ids [batch, position]; `weights` have their names in the file, in float32.

    `after` gets the stream after the embedding and after each sub-layer. `epsilon` is that of layer norms, if any. A
    layer without heads, or without neurons, adds nothing there, whatever its bias: as in `forward.py`.
    """
    seen = [] if after is None else after
    length = ids.shape[1]
    stream = weights["embed.W_E"][ids] + weights["pos_embed.W_pos"][:length]
    layers = len({name.split(".")[1] for name in weights if name.startswith("blocks.")})
    seen.append(stream)
    hidden = np.triu(np.ones((length, length), bool), 1) if causal else None
    for number in range(layers):
        layer = {name.rpartition(".")[2]: w for name, w in weights.items() if name.startswith(f"blocks.{number}.")}
        if len(layer["W_Q"]):  # as in the backends: without heads or neurons nothing is added, not even a bias
            stream = stream + _attention(layer, _normed(stream, epsilon), hidden, dot)
        seen.append(stream)
        if layer["W_in"].shape[1]:
            neurons = np.maximum(dot(_normed(stream, epsilon), layer["W_in"]) + layer["b_in"], np.float32(0))
            stream = stream + (dot(neurons, layer["W_out"]) + layer["b_out"])
        seen.append(stream)
    return dot(_normed(stream, epsilon), weights["unembed.W_U"])


def _normed(stream: Array, epsilon: float | None) -> Array:
    """The stream after a layer norm, its mean by Welford's recurrence; without epsilon the stream itself."""
    if epsilon is None:
        return stream
    mean = np.zeros(stream.shape[:-1], np.float32)
    for place in range(stream.shape[-1]):
        mean = mean + (stream[..., place] - mean) * np.float32(1 / (place + 1))
    centred = stream - mean[..., None]
    variance = (centred * centred).mean(-1, keepdims=True, dtype=np.float32)
    scale = np.float32(1) / np.sqrt(variance + np.float32(epsilon))
    return np.asarray(centred * scale * np.float32(epsilon**0.5))


def _attention(layer: Mapping[str, Array], stream: Array, hidden: Array | None, dot: Order) -> Array:
    """What all heads write, in one product with W_O."""
    read = []
    for head in range(layer["W_Q"].shape[0]):
        q, k, v = (dot(stream, layer[f"W_{part}"][head]) + layer[f"b_{part}"][head] for part in "QKV")
        scores = dot(q, np.swapaxes(k, -1, -2))
        if hidden is not None:
            scores = np.where(hidden, np.float32(-np.inf), scores)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        ones = np.ones((*powers.shape[:-2], powers.shape[-1], 1), np.float32)
        read.append(dot(powers / dot(powers, ones), v))
    w_o = layer["W_O"]
    return dot(np.concatenate(read, -1), w_o.reshape(-1, w_o.shape[-1])) + layer["b_O"]
