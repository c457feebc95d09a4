"""A model's weights for the C kernel, whose `c/pack.h` packs them: all in one array, and the sizes of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import Parameters

__all__ = ["flat", "sizes"]


def flat(parameters: Parameters) -> NDArray[np.float32]:
    """All weights in float32, one array after another, in the order of `Parameters.named`."""
    with np.errstate(over="ignore"):
        return np.concatenate([array.ravel() for _, array in parameters.named()], dtype=np.float32, casting="same_kind")


def sizes(parameters: Parameters) -> NDArray[Any]:
    """The numbers of tokens, positions, dimensions and logits; then of each layer's heads, their inside, neurons."""
    found = [*parameters.W_E.shape[:1], *parameters.W_pos.shape, parameters.W_U.shape[1]]
    for layer in parameters.layers:
        found += [*layer.b_Q.shape, *layer.b_in.shape]
    return np.array(found, np.int32)
