"""Trains one part: a head or a group of neurons, dense in the dimensions that it reads and writes.

All weights of a part are trained by Adam on noisy codes. Then the last matrix, on which the output depends linearly, is
set to the least-squares solution on noisy codes: gradient steps alone approach it slowly.

Heads. The loss of queries and keys is about the logarithm of the attention: squared error where the compiled head
attends, and elsewhere a penalty above a floor. Values are trained on the output.

Arrays are padded to a few sizes, because JAX compiles a function again for every size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from tracr.natural.learned.codes import PartCodes

__all__ = ["FittedPart", "fit", "width_of"]

Array = NDArray[Any]
Tree = dict[str, Any]  # of arrays, by name: q, k, v or in; out; and their biases b_q, ...
FLOOR = 9.0  # keys that get no attention should be this far below the smallest share, as a logarithm
NOTHING = 1e-12  # a smaller share of the attention is none
MASKED = -1e9
STEEP = 4.0  # the size of the first weights of neurons, times the spacing of their inputs
SCORES = 1.5  # the size of the first weights of queries and keys
HEAD_RATE, NEURON_RATE = 3e-2, 1e-2
HEAD_BATCH, NEURON_BATCH = 64, 256
RIDGE = 1e-9  # of least squares, relative to the variance of the features
ROUNDS = 3
NEURONS = 512  # the most neurons of a group
AIM = 0.25  # training stops if the error on exact codes is at most this many margins
DRAWS = 20_000  # rows with noise for least squares, and as many for measuring


@dataclass(frozen=True, eq=False)
class FittedPart:
    """The weights of a trained part in the dimensions it reads and writes, and its largest errors, in margins."""

    weights: dict[str, Array]
    error: float
    """On the exact codes."""
    noisy: float
    """On codes with noise that was not used in training."""


def width_of(part: PartCodes) -> int:
    """The number of neurons that a group gets, or the d_head that a head needs."""
    if part.pattern is None:
        return min(_at_least(4 * part.size, 64, 2), NEURONS)
    query, key, value = (len(part.reads[name]) for name in "qkv")
    return _at_least(max(min(query, key) + 1, min(value + 1, len(part.writes))), 8, 2)


def fit(part: PartCodes, width: int, spacing: Array, margins: Array, seed: int, steps: int, causal: bool) -> FittedPart:
    """The part, trained for `ROUNDS` rounds of `steps` steps, or until its error is well below the margins.

    A head is trained further in each round; neurons start again, with twice as many.
    """
    problem = _Problem(part, spacing, margins, causal)
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    weights = problem.start(rng, width)
    found: list[FittedPart] = []
    for number in range(ROUNDS):
        if number and part.pattern is None:
            weights = problem.start(rng, min(width * 2**number, NEURONS))
        weights = _train(weights, problem.lesson, jax.random.fold_in(key, number), steps)
        found.append(problem.finished(weights, rng))
        if found[-1].error <= AIM:
            break
    return min(found, key=lambda one: one.error)


class _Problem:
    """A part to train: its codes, divided by their scales and padded."""

    def __init__(self, part: PartCodes, spacing: Array, margins: Array, causal: bool) -> None:
        self.part = part
        self.scales = {name: self._scale(name, spacing) for name in part.reads}
        self.margins = {name: margins[list(slots)] / self.scales[name] for name, slots in part.reads.items()}
        self.allowed = margins[list(part.writes)]
        self.codes = {name: array / self.scales[name] for name, array in part.codes.items()}
        rows, columns = _at_least(part.size, 64, 8), _at_least(len(part.writes), 8, 4)
        self.lesson: Tree = {
            "codes": {name: _pad(array, rows, self._columns(name)) for name, array in self.codes.items()},
            "noise": {name: _pad(array[None], 1, self._columns(name))[0] for name, array in self.margins.items()},
            "wanted": _pad(part.wanted, rows, columns),
            "allowed": np.pad(self.allowed, (0, columns - len(self.allowed)), constant_values=1.0).astype(np.float32),
            "count": part.size,
            "mask": None,
        }
        if part.pattern is not None:
            length = part.pattern.shape[-1]
            shares = np.log(np.maximum(part.pattern, NOTHING))
            floor = np.log(part.pattern[part.pattern > NOTHING].min()) - FLOOR
            logs = np.where(part.pattern > NOTHING, shares, floor - 1)
            self.lesson |= {"logs": _pad(logs, rows, length), "floor": np.float32(floor)}
            self.lesson["mask"] = np.where(np.tri(length) if causal else np.ones((length, length)), 0.0, MASKED)

    def _scale(self, name: str, spacing: Array) -> Array:
        """Divisors of codes: neurons see neighbouring values at a distance of 1, heads see numbers up to 1."""
        if name == "in":
            return np.asarray(spacing[list(self.part.reads[name])])
        codes = self.part.codes[name]
        return np.asarray(np.maximum(1.0, np.abs(codes).max(axis=(0, 1), initial=0.0)))

    def _columns(self, name: str) -> int:
        return _at_least(len(self.part.reads[name]), 8, 4)

    def start(self, rng: np.random.Generator, width: int) -> Tree:
        """Random weights. A neuron starts to act near one of the examples."""
        weights: Tree = {}
        for name, slots in self.part.reads.items():
            size = (STEEP if name == "in" else SCORES) / np.sqrt(len(slots) + (name != "in") or 1)
            weights[name] = rng.normal(0, size, (self._columns(name), width))
            weights[f"b_{name}"] = np.zeros(width)
        if "in" in weights:
            examples = self.lesson["codes"]["in"][rng.integers(self.part.size, size=width)]
            weights["b_in"] = rng.normal(0, 1, width) - (examples * weights["in"].T).sum(axis=1)
        columns = self.lesson["wanted"].shape[-1]
        weights["out"] = rng.normal(0, 0.1 / np.sqrt(width), (width, columns))
        mean = self.part.wanted.reshape(-1, len(self.part.writes)).mean(axis=0)
        weights["b_out"] = np.pad(mean, (0, columns - len(mean)))
        return {name: jnp.asarray(array, dtype=jnp.float32) for name, array in weights.items()}

    def finished(self, weights: Tree, rng: np.random.Generator) -> FittedPart:
        """The part with its last matrix by least squares, without padding, and its errors."""
        kept = {name: np.asarray(array, dtype=np.float64) for name, array in weights.items()}
        for name, slots in self.part.reads.items():
            kept[name] = kept[name][: len(slots)]
        kept["out"], kept["b_out"] = _least_squares(*self._features(kept, rng, least=0.0, most=1.0))
        error, noisy = (self._error(kept, rng, noise) for noise in (0.0, 1.0))
        for name in self.part.reads:
            kept[name] = kept[name] / self.scales[name][:, None]
        return FittedPart(kept, error, noisy)

    def _features(self, weights: Tree, rng: np.random.Generator, least: float, most: float) -> tuple[Array, Array]:
        """The last features and the wanted outputs, a row for each example (with noise, several) and position.

        The size of the noise, in margins, is drawn for each example.
        """
        part, examples = self.part, np.arange(self.part.size)
        positions = part.wanted.shape[1:-1]
        if most:
            examples = rng.integers(part.size, size=max(1, DRAWS // int(np.prod(positions))))
            if len(examples) > part.size:
                examples[: part.size] = np.arange(part.size)
        size = rng.uniform(least, most, (len(examples), *[1] * len(positions), 1))
        codes = {
            name: array[examples] + size * self.margins[name] * rng.uniform(-1, 1, array[examples].shape)
            for name, array in self.codes.items()
        }
        features, _ = jax.device_get(_features(weights, codes, self.lesson["mask"]))
        width = features.shape[-1]
        wanted = part.wanted[examples].reshape(-1, len(part.writes))
        return np.asarray(features, dtype=np.float64).reshape(-1, width), wanted

    def _error(self, weights: Tree, rng: np.random.Generator, noise: float) -> float:
        features, wanted = self._features(weights, rng, noise, noise)
        return float((np.abs(features @ weights["out"] + weights["b_out"] - wanted) / self.allowed).max(initial=0.0))


def _at_least(size: int, least: int, factor: int) -> int:
    """The first of least, least * factor, ... that is large enough."""
    while least < size:
        least *= factor
    return least


def _pad(array: Array, rows: int, columns: int) -> Array:
    """Zeros after the first and the last axis."""
    added = [(0, rows - len(array)), *[(0, 0)] * (array.ndim - 2), (0, columns - array.shape[-1])]
    return np.pad(array, added).astype(np.float32)


def _least_squares(features: Array, wanted: Array) -> tuple[Array, Array]:
    """The matrix and the bias that map features to outputs best."""
    centre, middle = features.mean(axis=0), wanted.mean(axis=0)
    centred = features - centre
    square = centred.T @ centred
    square[np.diag_indices_from(square)] += RIDGE * (np.trace(square) / len(square) or 1.0)
    matrix = np.linalg.solve(square, centred.T @ (wanted - middle))
    return matrix, middle - centre @ matrix


def _features(weights: Tree, codes: Tree, mask: Any) -> tuple[Any, Any]:
    """The features that the last matrix reads: neurons, or a head's mean values; and the logarithm of its attention."""
    read = {name: array @ weights[name] + weights[f"b_{name}"] for name, array in codes.items()}
    if "in" in read:
        return jax.nn.gelu(read["in"], approximate=True), None
    logs = jax.nn.log_softmax(read["q"] @ jnp.swapaxes(read["k"], -1, -2) + mask)
    return jnp.exp(jax.lax.stop_gradient(logs)) @ read["v"], logs


def _loss(weights: Tree, lesson: Tree, key: Any) -> Any:
    """The loss on a batch of examples with noise."""
    keys = jax.random.split(key, 2 + len(lesson["codes"]))
    batch = NEURON_BATCH if lesson["mask"] is None else HEAD_BATCH
    rows = jax.random.randint(keys[0], (batch,), 0, lesson["count"])
    size = jax.random.uniform(keys[1], (batch,))
    codes = {}
    for (name, array), own in zip(lesson["codes"].items(), keys[2:], strict=True):
        drawn = array[rows]
        noise = jax.random.uniform(own, drawn.shape, minval=-1, maxval=1) * lesson["noise"][name]
        codes[name] = drawn + noise * size.reshape(-1, *[1] * (drawn.ndim - 1))
    features, logs = _features(weights, codes, lesson["mask"])
    off = (features @ weights["out"] + weights["b_out"] - lesson["wanted"][rows]) / lesson["allowed"]
    loss = (off**2).mean()
    if logs is not None:
        wanted, floor = lesson["logs"][rows], lesson["floor"]
        above = jnp.where(wanted >= floor, logs - wanted, jnp.maximum(logs - floor, 0.0))
        loss += (above**2).mean()
    return loss


@partial(jax.jit, static_argnames="steps")
def _train(weights: Tree, lesson: Tree, key: Any, steps: int) -> Tree:
    """The weights after one round."""
    rate = NEURON_RATE if lesson["mask"] is None else HEAD_RATE
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def step(carry: Any, number: Any) -> Any:
        weights, state = carry
        slope = jax.grad(_loss)(weights, lesson, jax.random.fold_in(key, number))
        change, state = optimiser.update(slope, state)
        return (optax.apply_updates(weights, change), state), None

    (weights, _), _ = jax.lax.scan(step, (weights, optimiser.init(weights)), jnp.arange(steps))
    return weights
