"""Adds noise to weights: trained weights are not exact either."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.errors import TracrError
from tracr.model.variants.readback import first_problem
from tracr.model.variants.variant_model import VariantModel, changed

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["with_noise"]

STRONGEST, WEAKEST = -4, -60  # powers of two that are tried


def with_noise(model: DesignedModel, scale: float | None, seed: int) -> VariantModel:
    """The model with independent Gaussian noise of standard deviation `scale` on every weight and bias.

    Outputs are continuous in the weights, and decoding takes the largest of several logits or the nearest of several
    numbers. Therefore noise below some level changes no decoded output. This level depends on the program: a logit gap
    of 256 and the slopes of staircases amplify what they read, and a head that computes a sum multiplies what it reads
    at BOS by 2**34. `scale=None` takes the strongest power of two for which no problem is found. Then every output is
    right on up to 2,000 inputs (all, if there are no more), and on up to 64 of each length every variable is read back
    after every sub-layer where it has directions, numbers to 1e-4 (`readback.py`). With a scale of your own, call
    `verify` to check the outputs.
    """
    arguments.whole("seed", seed)
    if scale is None:
        for power in range(STRONGEST, WEAKEST - 1, -1):
            candidate = _noisy(model, 2.0**power, seed)
            if not first_problem(candidate):
                return candidate
        raise TracrError(
            "every tested scale of noise makes the model wrong", hint="check the model without noise: model.verify()"
        )
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 <= scale < math.inf:
        raise TracrError(f"the scale of the noise must be a number >= 0, not {scale!r}", hint="write scale=1e-6")
    return _noisy(model, float(scale), seed)


def _noisy(model: DesignedModel, scale: float, seed: int) -> VariantModel:
    rng = np.random.default_rng(seed)

    def disturb(array: NDArray[Any]) -> NDArray[Any]:
        return array + scale * rng.standard_normal(array.shape)

    step = f"with_noise({scale:.3g}, seed={seed})"
    return changed(model, step, parameters=model.parameters.map(disturb), noise=scale)
