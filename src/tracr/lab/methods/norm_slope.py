"""The gradient before a layer norm, from that after it.

With c the centred stream, v its mean square, σ = √(v + ε) and g the gain, the norm is y = g c / σ. For the gradient G
at y, the gradient at the stream is P (g/σ) (G - (c/σ) mean(G c/σ)), where P subtracts the mean over dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.model.variants.layer_norm import LayerNorm
from tracr.natural.architecture import NORM_EPSILON, plain_norm

__all__ = ["through_norm"]

Array = NDArray[Any]


def through_norm(norm: Callable[[Any, Any], Any] | None, stream: Array, gradient: Array) -> Array:
    """The gradient [..., d_model] at a stream, from the gradient at the normalised stream."""
    if norm is None:
        return gradient
    if isinstance(norm, LayerNorm):
        if norm.width is not None:
            seen = _through(norm.epsilon, norm.gain, stream[..., : norm.width], gradient[..., : norm.width])
            return np.concatenate([seen, gradient[..., norm.width :]], axis=-1)
        return _through(norm.epsilon, norm.gain, stream, gradient)
    if norm is plain_norm:
        return _through(NORM_EPSILON, 1.0, stream, gradient)
    raise TracrError("the derivative of this model's layer norm is not known", hint="use a method without gradients")


def _through(epsilon: float, gain: float, stream: Array, gradient: Array) -> Array:
    centred = stream - stream.mean(axis=-1, keepdims=True)
    size = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + epsilon)
    normal = centred / size
    found = gradient - normal * (gradient * normal).mean(axis=-1, keepdims=True)
    found -= found.mean(axis=-1, keepdims=True)
    found *= gain / size
    return np.asarray(found)
