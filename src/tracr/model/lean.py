"""The forward pass of `forward.py` in numpy for who wants the logits only: no activation is kept or can be changed.

Compiled weights are zero outside a few rows and columns: each matrix reads and writes a window of the residual stream,
the smallest range of dimensions that holds what is not zero, and the stream is changed in place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.model.parameters import LayerParameters, Parameters

__all__ = ["Lean"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Affine:
    """`x @ weight + bias`, where x is a window of the stream or the result goes to one."""

    window: slice
    weight: Array
    bias: Array

    @staticmethod
    def reading(weight: Array, bias: Array) -> _Affine:
        """Of a matrix [d_model, n], the rows that are not zero."""
        window = _range((weight != 0).any(axis=1))
        return _Affine(window, np.ascontiguousarray(weight[window]), bias)

    @staticmethod
    def writing(weight: Array, bias: Array) -> _Affine:
        """Of a matrix [n, d_model], the columns that are not zero."""
        window = _range((weight != 0).any(axis=0) | (bias != 0))
        return _Affine(window, np.ascontiguousarray(weight[:, window]), bias[window])

    def read(self, stream: Array) -> Array:
        """The map of what the stream holds."""
        result: Array = stream[:, self.window] @ self.weight
        result += self.bias
        return result

    def write(self, stream: Array, values: Array) -> None:
        """Add the map of `values` to the stream."""
        result = values @ self.weight
        result += self.bias
        stream[:, self.window] += result


@dataclass(frozen=True, eq=False)
class _Layer:
    """The maps of one block; an attention without heads and an MLP without neurons have none."""

    heads: int
    attention: tuple[_Affine, ...]
    mlp: tuple[_Affine, ...]

    @staticmethod
    def of(layer: LayerParameters) -> _Layer:
        """The windows of a layer's weights."""
        heads, width, d_head = layer.W_Q.shape

        def reading(weight: Array, bias: Array) -> _Affine:
            return _Affine.reading(weight.swapaxes(0, 1).reshape(width, heads * d_head), bias.reshape(-1))

        attention = (
            reading(layer.W_Q, layer.b_Q),
            reading(layer.W_K, layer.b_K),
            reading(layer.W_V, layer.b_V),
            _Affine.writing(layer.W_O.reshape(heads * d_head, width), layer.b_O),
        )
        mlp = (_Affine.reading(layer.W_in, layer.b_in), _Affine.writing(layer.W_out, layer.b_out))
        return _Layer(heads, attention if heads else (), mlp if layer.b_in.size else ())


class Lean:
    """A model's weights, ready to be run."""

    def __init__(self, parameters: Parameters) -> None:
        self.W_E, self.W_pos = parameters.W_E, parameters.W_pos
        self.layers = [_Layer.of(layer) for layer in parameters.layers]
        self.unembed = _Affine.reading(parameters.W_U, np.zeros(parameters.W_U.shape[1], parameters.W_U.dtype))

    def __call__(self, ids: Array, *, causal: bool) -> Array:
        """Logits [batch, position, d_vocab_out] for token ids [batch, position], BOS included."""
        batch, length = ids.shape
        stream = (self.W_E[ids] + self.W_pos[:length]).reshape(batch * length, -1)
        hidden = np.triu(np.full((length, length), -math.inf, stream.dtype), 1) if causal else None
        for layer in self.layers:
            if layer.attention:
                _attend(layer, stream, batch, hidden)
            if layer.mlp:
                reads, writes = layer.mlp
                neurons = reads.read(stream)
                writes.write(stream, np.maximum(neurons, 0, out=neurons))
        return self.unembed.read(stream).reshape(batch, length, -1)


def _attend(layer: _Layer, stream: Array, batch: int, hidden: Array | None) -> None:
    q, k, v = (
        part.read(stream).reshape(batch, -1, layer.heads, part.bias.size // layer.heads).swapaxes(1, 2)
        for part in layer.attention[:3]
    )
    weights = q @ k.swapaxes(2, 3)
    if hidden is not None:
        weights += hidden
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    layer.attention[3].write(stream, (weights @ v).swapaxes(1, 2).reshape(len(stream), -1))


def _range(used: Any) -> slice:
    """The smallest range with all that is used."""
    places = np.flatnonzero(used)
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)
