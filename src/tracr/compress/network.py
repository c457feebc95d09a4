"""A compiled model as the reads and writes of its sub-layers.

With a projection W, every write y to the residual stream becomes y W, and every read with a matrix B becomes Wᵀ B. A
writer that adds y on the dimensions S therefore reaches a reader B only through the small matrix W[S] (Wᵀ B). The
forward pass needs no residual stream: it is written with G = W Wᵀ. Activations that depend only on the token and its
position are computed once for each such pair, not for every input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import LayerParameters, Parameters

__all__ = ["Attention", "Mlp", "Network", "Part", "network_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attention:
    """The heads of a layer, without zero rows and columns: queries and keys [head, D, k], values [head, D, v], writes
    [head, v, S]."""

    name: str
    layer: int
    W_Q: Array
    b_Q: Array
    W_K: Array
    b_K: Array
    W_V: Array
    b_V: Array
    W_O: Array
    b_O: Array
    dims: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Mlp:
    """The neurons of a layer that write something: reads [D, m], writes [m, S]."""

    name: str
    layer: int
    W_in: Array
    b_in: Array
    W_out: Array
    b_out: Array
    dims: NDArray[np.intp]


Part = Attention | Mlp


@dataclass(frozen=True, eq=False)
class Network:
    """The sub-layers that are not no-ops, in order, and the unembedding."""

    width: int
    parts: tuple[Part, ...]
    W_U: Array
    n_layers: int
    causal: bool


def network_of(parameters: Parameters, causal: bool) -> Network:
    """The reads and writes of a model's sub-layers."""
    parts: list[Part] = []
    for number, layer in enumerate(parameters.layers):
        for part in (_attention(number, layer), _mlp(number, layer)):
            if part.dims.size:
                parts.append(part)
    return Network(parameters.W_E.shape[1], tuple(parts), parameters.W_U, len(parameters.layers), causal)


def _attention(number: int, layer: LayerParameters) -> Attention:
    heads = len(layer.W_O)
    dims = np.flatnonzero(layer.W_O.any(axis=(0, 1)) | (layer.b_O != 0))
    compared = [
        np.flatnonzero(
            (layer.W_Q[h].any(axis=0) | (layer.b_Q[h] != 0)) & (layer.W_K[h].any(axis=0) | (layer.b_K[h] != 0))
        )
        for h in range(heads)
    ]
    moved = [np.flatnonzero(layer.W_O[h].any(axis=1)) for h in range(heads)]

    def take(array: Array, chosen: list[Any], axis: int) -> Array:
        found = np.zeros([*array.shape[:axis], max(map(len, chosen), default=0), *array.shape[axis + 1 :]])
        for head, places in enumerate(chosen):
            np.moveaxis(found[head], axis - 1, 0)[: len(places)] = np.moveaxis(array[head], axis - 1, 0)[places]
        return found

    return Attention(
        f"blocks.{number}.attn",
        number,
        take(layer.W_Q, compared, 2),
        take(layer.b_Q, compared, 1),
        take(layer.W_K, compared, 2),
        take(layer.b_K, compared, 1),
        take(layer.W_V, moved, 2),
        take(layer.b_V, moved, 1),
        take(layer.W_O, moved, 1)[:, :, dims],
        layer.b_O[dims],
        dims,
    )


def _mlp(number: int, layer: LayerParameters) -> Mlp:
    dims = np.flatnonzero(layer.W_out.any(axis=0) | (layer.b_out != 0))
    used = layer.W_out.any(axis=1)
    return Mlp(
        f"blocks.{number}.mlp",
        number,
        layer.W_in[:, used],
        layer.b_in[used],
        layer.W_out[used][:, dims],
        layer.b_out[dims],
        dims,
    )
