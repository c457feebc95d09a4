"""Rounds of second-order steps with attention that is first softened, from random starts and then from the best runs.

Attention scores are multiplied by a number below 1 that grows to 1 during a round; the targets stay those of the
compiled model. A soft softmax has no plateaus, so Levenberg-Marquardt steps get from a random start to where Adam gets
in thousands of steps. Random starts alone rarely find the lowest loss where d is too small for all reads. So the later
rounds start from the best runs found, with noise in proportion to the size of each feature, and soften attention less:
a small change of a good run often leads to a better one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RUNS", "disturbed", "random_starts", "sharpness"]

Array = NDArray[Any]
RUNS = 16  # runs of a round
SPREAD = 0.2  # standard deviation of random starts
NOISE = 0.03, 0.4  # the least and largest noise, in parts of a feature's size
LEAST = 0.1  # features smaller than this are disturbed as if they had this size
SOFT = 0.03, 0.5  # the least and largest softness at the beginning of a round
RISING = 0.7  # the part of a round in which attention gets sharp


def random_starts(rng: np.random.Generator, shape: tuple[int, ...], softest: float) -> tuple[Array, Array]:
    """Random projections [run, ...], and the softness with which each begins."""
    return rng.normal(scale=SPREAD, size=(RUNS, *shape)), np.full(RUNS, softest)


def disturbed(rng: np.random.Generator, best: Array) -> tuple[Array, Array]:
    """The best projections [number, ..., D, d], in turn, with noise, and the softness with which each begins."""
    W = best[np.arange(RUNS) % len(best)]
    size = np.sqrt((W**2).mean(axis=-1, keepdims=True) + LEAST**2)
    noise = np.exp(rng.uniform(*np.log(NOISE), size=RUNS)).reshape(-1, *[1] * (W.ndim - 1))
    return W + noise * size * rng.normal(size=W.shape), np.exp(rng.uniform(*np.log(SOFT), size=RUNS))


def sharpness(softness: Array, done: float) -> Array:
    """What scores are multiplied by, when a part `done` of the round is done."""
    return np.asarray(np.minimum(1.0, softness ** (1 - done / RISING)))
