"""The residual stream in a random orthogonal basis: no dimension means anything by itself any more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.model.variants.variant import changed

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["random_rotation", "rotated"]

Array = NDArray[Any]
MIXING = 3  # rounds beyond those after which every dimension could have met every other


def rotated(model: CompiledModel, seed: int) -> CompiledModel:
    """The model with a random rotation R of its residual stream: writers x @ R, readers Rᵀ @ W.

    In exact arithmetic x R Rᵀ W = x W: every query, key, value, neuron and logit is what it was. Floating point is as
    exact as before if it has the bits. Let x and W be multiples of g and h, as codes, integers and logit gaps are. The
    entries of R are multiples of 2**-r, so all products in (x R)(Rᵀ W) are multiples of g h 4**-r, and no partial sum
    is larger than |x| |W|, since R keeps lengths. If that is within 24 bits nothing is rounded. This matters: a head
    that adds up instead of averaging weighs BOS 2**34 times as much as a key, and relies on reading 0 there.

    A layer norm subtracts the mean, the component along (1, ..., 1), and divides by a function of the length. Rotations
    that leave (1, ..., 1) alone commute with both, so a model with layer norms gets one of those.
    """
    rng = np.random.default_rng(seed)
    normed = model.variant is not None and model.variant.layer_norm is not None
    rotation = random_rotation(model.d_model, rng, signs=not normed)
    return changed(model, f"rotated(seed={seed})", basis=(rotation, rotation.T))


def random_rotation(size: int, rng: np.random.Generator, *, signs: bool) -> Array:
    """An orthogonal matrix whose entries are multiples of 2**-r, r about log4(size) + 3.

    In each of r rounds the dimensions meet in random groups of four (up to three sit out), and x becomes
    (sum x)/2 - x within a group: that is orthogonal, a multiple of 1/2, and leaves (1, 1, 1, 1) as it is. With `signs`
    each dimension is also turned around or not. After log4(size) rounds all could have met; the rest is for mixing.
    The largest entry is then about as large as in a rotation drawn uniformly.
    """
    rotation = np.eye(size)
    four = np.full((4, 4), 0.5) - np.eye(4)
    for _ in range(math.ceil(math.log(size, 4)) + MIXING):
        order = rng.permutation(size)
        groups = order[: size - size % 4].reshape(-1, 4)
        rotation[:, groups] = rotation[:, groups] @ four
        if signs:
            rotation *= rng.choice([-1.0, 1.0], size)
    return rotation
