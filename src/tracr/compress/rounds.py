"""Rounds of second-order steps with attention that is first softened and with weight decay.

Attention scores are multiplied by a number below 1 that grows to 1 during a round; the targets stay those of the
compiled model. A soft softmax has no plateaus. Weight decay, which falls to 0 during a round, removes what is not
needed and makes room for the rest, as in the paper's recipe; features of the output, which have to be large, have less
of it. The first rounds have starts with needed reads (`needed.py`). The later ones start from the best runs found, with
noise in proportion to the size of each feature: a small change of a good run often leads to a better one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIRST", "ITERATIONS", "OF_OUTPUT", "RUNS", "SOFTNESS", "decay_at", "disturbed", "sharpness_at"]

Array = NDArray[Any]
RUNS = 16  # runs of a round
ITERATIONS = 80  # second-order steps of a round
FIRST = 3  # one of so many rounds, rounded up, has new starts
SOFTNESS = 0.1  # with which new starts begin
NOISE = 0.08, 0.4  # the least and largest noise of disturbed runs, in parts of a feature's size
LEAST = 0.1  # features smaller than this are disturbed as if they had this size
SOFT = 0.04, 0.2  # the least and largest softness with which disturbed runs begin
DECAY = 0.03, 1e-4  # the weight decay, first and last
OF_OUTPUT = 0.03  # the part of it that features of the output have
RISING = 0.7  # the part of a round in which attention is softened and weights decay


def disturbed(rng: np.random.Generator, best: Array) -> tuple[Array, Array]:
    """The best projections [number, ..., D, d], in turn, with noise, and the softness with which each begins."""
    W = best[np.arange(RUNS) % len(best)]
    size = np.sqrt((W**2).mean(axis=-1, keepdims=True) + LEAST**2)
    noise = _between(rng, NOISE).reshape(-1, *[1] * (W.ndim - 1))
    return W + noise * size * rng.normal(size=W.shape), _between(rng, SOFT)


def _between(rng: np.random.Generator, ends: tuple[float, float]) -> Array:
    """A number for each run, with uniform logarithms."""
    return np.asarray(np.exp(rng.uniform(np.log(ends[0]), np.log(ends[1]), size=RUNS)))


def sharpness_at(softness: Array, done: float) -> Array:
    """What scores are multiplied by, when a part `done` of the round is done."""
    return np.asarray(np.minimum(1.0, softness ** (1 - done / RISING)))


def decay_at(done: float) -> float:
    """The weight decay then."""
    return float(DECAY[0] * (DECAY[1] / DECAY[0]) ** (done / RISING)) if done < RISING else 0.0
