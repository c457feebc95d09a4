"""A transformer with patched edges, written without the package's forward pass: every reader adds up what it sees.

In float64, one pair of inputs at a time. Writers and readers are heads and whole MLPs, and `embed` and `unembed`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import Parameters

Array = NDArray[np.float64]
Edges = Collection[tuple[str, str]]


def plain_norm(x: Array, epsilon: float, gain: float = 1.0) -> Array:
    x = x - x.mean(-1, keepdims=True)
    return gain * x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)


def relu(x: Array) -> Array:
    return np.where(x > 0, x, 0)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_new(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class ByHand:
    """The model with these weights."""

    def __init__(self, weights: Parameters, *, causal: bool, norm: Any = lambda x: x, activation: Any = relu) -> None:
        self.weights = weights.map(lambda array: array.astype(np.float64))
        self.causal, self.norm, self.activation = causal, norm, activation

    def run(
        self, ids: Any, patched: Edges = (), instead: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], Array]:
        """The output of every writer, and the logits, for the ids of one input."""
        w = self.weights
        written: dict[str, Array] = {"embed": w.W_E[ids] + w.W_pos[: len(ids)]}
        biases = np.zeros(w.W_E.shape[1])

        def seen(reader: str) -> Array:
            total = sum(written.values()) + biases
            for writer, target in patched:
                if target == reader:
                    assert instead is not None
                    total = total - written[writer] + instead[writer]
            return np.asarray(self.norm(total))

        for number, layer in enumerate(w.layers):
            outputs = {}
            for head in range(len(layer.W_Q)):
                name = f"blocks.{number}.attn.{head}"
                q = seen(f"{name}.q") @ layer.W_Q[head] + layer.b_Q[head]
                k = seen(f"{name}.k") @ layer.W_K[head] + layer.b_K[head]
                v = seen(f"{name}.v") @ layer.W_V[head] + layer.b_V[head]
                outputs[name] = self._attention(q, k, v) @ layer.W_O[head]
            written.update(outputs)
            biases = biases + layer.b_O
            if layer.b_in.size:
                name = f"blocks.{number}.mlp"
                written[name] = self.activation(seen(name) @ layer.W_in + layer.b_in) @ layer.W_out
            biases = biases + layer.b_out
        return written, seen("unembed") @ w.W_U

    def _attention(self, q: Array, k: Array, v: Array) -> Array:
        mixed = np.zeros_like(v)
        for query in range(len(q)):
            keys = range(query + 1) if self.causal else range(len(k))
            scores = np.array([q[query] @ k[key] for key in keys])
            shares = np.exp(scores - scores.max())
            mixed[query] = sum(share * v[key] for share, key in zip(shares / shares.sum(), keys, strict=True))
        return mixed

    def patched(self, clean: Any, corrupted: Any, edges: Edges) -> Array:
        """The logits on a clean input when readers see writers' outputs on the corrupted one."""
        return self.run(clean, edges, self.run(corrupted)[0])[1]
