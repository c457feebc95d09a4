"""The forward pass of a GPT-2 in numpy: logits, the residual stream, and the σ by which each layer norm divides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.graft.injection.host import GPT2Host

__all__ = ["HostRun", "Inside", "log_probabilities", "run_host"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class HostRun:
    """What a run gives.

    Args:
        logits: [input, position, word].
        deviations: σ, [norm, input, position]; norms in order, two for each layer, and the last one.
        streams: [layer, input, position, dimension], after each layer.
    """

    logits: Array
    deviations: Array
    streams: Array


@dataclass(frozen=True, eq=False)
class Inside:
    """What the heads of a layer read, side by side, and its neurons, [input, position, ...]."""

    mixed: Array
    neurons: Array


def run_host(host: GPT2Host, ids: Array, dtype: type = np.float64, inside: list[Inside] | None = None) -> HostRun:
    """Run the model on a batch of inputs of one length; `inside` gets the insides of its layers."""
    weights: dict[str, Array] = {name: array.astype(dtype) for name, array in host.tensors.items()}
    found: list[Array] = []
    streams: list[Array] = []

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + dtype(host.epsilon))
        found.append(deviation[..., 0])
        return np.asarray(centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def linear(x: Array, name: str) -> Array:
        return np.asarray(x @ weights[f"{name}.weight"] + weights[f"{name}.bias"])

    function, length = ACTIVATIONS[host.activation], ids.shape[1]
    x = weights["wte.weight"][ids] + weights["wpe.weight"][:length]
    for layer in range(host.layers):
        block = f"h.{layer}"
        mixed = _attention(linear(norm(x, f"{block}.ln_1"), f"{block}.attn.c_attn"), host.heads)
        x = x + linear(mixed, f"{block}.attn.c_proj")
        neurons = function(linear(norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc"))
        x = x + linear(neurons, f"{block}.mlp.c_proj")
        if inside is not None:
            inside.append(Inside(mixed, neurons))
        streams.append(x)
    logits = norm(x, "ln_f") @ weights["lm_head.weight"].T
    return HostRun(logits, np.array(found), np.array(streams))


def log_probabilities(logits: Array) -> Array:
    """The logarithms of the probabilities of the next token."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def _attention(qkv: Array, heads: int) -> Array:
    """What all heads read, side by side."""
    batch, length = qkv.shape[:2]
    q, k, v = (np.moveaxis(one.reshape(batch, length, heads, -1), 2, 1) for one in np.split(qkv, 3, axis=-1))
    scores = q @ np.swapaxes(k, 2, 3) / qkv.dtype.type(math.sqrt(q.shape[-1]))
    scores = np.where(np.tri(length, dtype=bool), scores, qkv.dtype.type(-np.inf))
    pattern = np.exp(scores - scores.max(axis=-1, keepdims=True))
    pattern = pattern / pattern.sum(axis=-1, keepdims=True)
    return np.asarray(np.moveaxis(pattern @ v, 1, 2).reshape(batch, length, -1))


def _gelu_new(x: Array) -> Array:
    clipped = np.clip(x, -50, 50)  # tanh is ±1 there
    inner = math.sqrt(2 / math.pi) * (clipped + 0.044715 * clipped * clipped * clipped)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)), dtype=x.dtype)


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))), dtype=x.dtype)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": _relu,
    "gelu": _gelu,
    "gelu_new": _gelu_new,
    "gelu_pytorch_tanh": _gelu_new,
}
