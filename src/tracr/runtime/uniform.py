"""Pads layers with zeros to one common size, as other frameworks need.

Heads and neurons of zeros add nothing. If the framework divides scores by √d_head, the query weights are multiplied by
it first. d_head is made a power of 4: its root is a power of 2, and scaling is exact in both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import LayerParameters, Parameters

__all__ = ["Sizes", "common_sizes", "layer_shapes", "resized", "uniform"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Sizes:
    """The numbers of heads and neurons of a layer, and the width of its heads."""

    heads: int
    d_head: int
    d_mlp: int

    @staticmethod
    def of(layer: LayerParameters) -> Sizes:
        """The sizes of a layer."""
        return Sizes(*layer.b_Q.shape, *layer.b_in.shape)


def layer_shapes(sizes: Sizes, d_model: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a layer's weights."""
    heads, d_head, d_mlp = sizes.heads, sizes.d_head, sizes.d_mlp
    return {
        **dict.fromkeys(("W_Q", "W_K", "W_V"), (heads, d_model, d_head)),
        **dict.fromkeys(("b_Q", "b_K", "b_V"), (heads, d_head)),
        "W_O": (heads, d_head, d_model),
        "b_O": (d_model,),
        "W_in": (d_model, d_mlp),
        "b_in": (d_mlp,),
        "W_out": (d_mlp, d_model),
        "b_out": (d_model,),
    }


def resized(layer: LayerParameters, sizes: Sizes) -> LayerParameters:
    """The layer cut, or padded with zeros, to other sizes."""
    shapes = layer_shapes(sizes, len(layer.b_O))
    changed = {}
    for field in fields(LayerParameters):
        array: Array = getattr(layer, field.name)
        whole = np.zeros(shapes[field.name], dtype=array.dtype)
        shared = tuple(map(slice, np.minimum(array.shape, whole.shape)))
        whole[shared] = array[shared]
        changed[field.name] = whole
    return LayerParameters(**changed)


def common_sizes(parameters: Parameters) -> Sizes:
    """The smallest sizes into which every layer fits: at least one head and one neuron, d_head a power of 4."""
    sizes = [Sizes(1, 1, 1), *map(Sizes.of, parameters.layers)]
    d_head = 1
    while d_head < max(size.d_head for size in sizes):
        d_head *= 4
    return Sizes(max(size.heads for size in sizes), d_head, max(size.d_mlp for size in sizes))


def uniform(parameters: Parameters, *, scaled: bool = False) -> Parameters:
    """The weights with all layers padded to the common sizes; `scaled` for scores that are divided by √d_head."""
    sizes = common_sizes(parameters)
    layers = [resized(layer, sizes) for layer in parameters.layers]
    if scaled:
        scale = math.sqrt(sizes.d_head)
        layers = [replace(layer, W_Q=layer.W_Q * scale, b_Q=layer.b_Q * scale) for layer in layers]
    return replace(parameters, layers=tuple(layers))
