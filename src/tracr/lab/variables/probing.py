"""Classifiers in numpy, trained with Adam (Kingma and Ba 2015) on the mean cross-entropy: a linear layer or an MLP."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.variables.choosing import Labelled

__all__ = ["Classifier", "train_classifier"]

Array = NDArray[Any]
DECAY = 1e-3  # of weights


@dataclass(frozen=True, eq=False)
class Classifier:
    """Layers of weights and biases, with ReLU between them, on standardised streams."""

    mean: Array
    scale: Array
    weights: tuple[Array, ...]

    def __call__(self, stream: Array) -> Array:
        """The number of the most likely value, for streams [..., d_model]."""
        return np.asarray(_layers((stream - self.mean) / self.scale, self.weights)[-1].argmax(axis=-1))


def _layers(given: Array, weights: tuple[Array, ...]) -> list[Array]:
    """The input of every layer, and the logits."""
    found = [given]
    for place in range(0, len(weights), 2):
        last = place == len(weights) - 2
        made = found[-1] @ weights[place] + weights[place + 1]
        found.append(made if last else np.maximum(made, 0))
    return found


def train_classifier(labelled: Labelled, hidden: tuple[int, ...], *, steps: int, rate: float, seed: int) -> Classifier:
    """A classifier with hidden layers of these sizes; full batches."""
    rng = np.random.default_rng(seed)
    mean = labelled.streams.mean(axis=0)
    spread = labelled.streams.std(axis=0)
    scale = np.where(spread > 1e-6 * max(float(spread.max(initial=0)), 1e-12), spread, 1.0)
    sizes = (labelled.streams.shape[1], *hidden, labelled.values)
    weights: list[Array] = []
    for rows, columns in itertools.pairwise(sizes):
        weights += [rng.normal(size=(rows, columns)) * np.sqrt(2 / rows), np.zeros(columns)]
    given = (labelled.streams - mean) / scale
    wanted = np.eye(labelled.values)[labelled.codes]
    moments = [(np.zeros_like(one), np.zeros_like(one)) for one in weights]
    for step in range(1, steps + 1):
        for place, slope in enumerate(_slopes(given, wanted, tuple(weights))):
            first, second = moments[place]
            moments[place] = first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            weights[place] = weights[place] - rate * first / (1 - 0.9**step) / size
    return Classifier(mean, scale, tuple(weights))


def _slopes(given: Array, wanted: Array, weights: tuple[Array, ...]) -> list[Array]:
    """The gradient of the loss for all weights and biases."""
    layers = _layers(given, weights)
    logits = layers[-1] - layers[-1].max(axis=1, keepdims=True)
    likely = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    back = (likely - wanted) / len(given)
    found: list[Array] = []
    for place in range(len(weights) - 2, -1, -2):
        before = layers[place // 2]
        found = [before.T @ back + DECAY * weights[place], back.sum(axis=0), *found]
        back = (back @ weights[place].T) * (before > 0)
    return found
