"""Trains featurisers by interchange interventions, in JAX.

A featuriser with parameters θ swaps its part of two streams: h = swap(θ, base, source). The loss is that of the answers
of the model after the place, at all tokens, against the program's (cross-entropy; for a numerical output the squared
error, in units of the range), plus a penalty of the featuriser. Adam, with a cosine schedule, minimises it on batches
of pairs. All questions are trained together. `progress` goes from 0 to 1 during training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tracr.adapters.jax import NAMESPACE
from tracr.ir.domains import Finite
from tracr.ir.parameters import Parameters
from tracr.lab.methods.passes import count_passes
from tracr.lab.variables.choosing import earliest_best
from tracr.lab.variables.found import Featuriser, FoundVariable
from tracr.lab.variables.network import Suffix
from tracr.lab.variables.questions import VariableData
from tracr.lab.variables.scoring import interchange_accuracy
from tracr.natural.activations import activation_in
from tracr.rasp.annotations import Encoding

__all__ = ["SwapMap", "SwapRecipe", "best_trained"]

Array = Any  # of JAX
Tree = Any
BATCH = 32


@dataclass(frozen=True)
class SwapMap:
    """A kind of featuriser. Equal ones are compiled once.

    Args:
        swap: from parameters, two streams [..., d_model] and the progress to the swapped stream.
        penalty: from parameters and the progress to a number.
    """

    swap: Callable[[Tree, Array, Array, Array], Array]
    penalty: Callable[[Tree, Array], Array]


@dataclass(frozen=True)
class SwapRecipe:
    """How long and how fast to train."""

    steps: int
    rate: float
    seed: int


@dataclass(frozen=True)
class _Answers:
    """Where the answers are in the logits."""

    start: int
    stop: int
    numerical: bool

    def loss(self, logits: Array, wanted: Array, none: Array) -> Array:
        """The mean loss over tokens; `wanted` are codes, or numbers in units of the range."""
        mine = logits[:, 1:, self.start : self.stop]
        if not self.numerical:
            likely = jax.nn.log_softmax(mine)
            return -jnp.take_along_axis(likely, wanted[:, 1:, None].astype(int), axis=-1).mean()
        known = jnp.where(none[:, 1:], 0.0, (mine[..., 0] * self.scale - wanted[:, 1:]) ** 2)
        missing = ((mine[..., 1] - none[:, 1:]) ** 2).mean() if self.stop - self.start > 1 else 0.0
        return known.mean() + missing

    scale: float = 1.0


def best_trained(
    data: VariableData,
    kind: SwapMap,
    start: Callable[[str, int], list[Tree]],
    finish: Callable[[Tree, int], Featuriser],
    recipe: SwapRecipe,
) -> dict[str, FoundVariable]:
    """For each question the featuriser of the place with the best interchange accuracy on training pairs.

    `start(place, width)` has the first parameters for each question, `finish(parameters, number)` makes the featuriser
    of a question from its trained ones.
    """
    made: dict[str, dict[str, FoundVariable]] = {question.name: {} for question in data.questions}
    for place in data.network.places:
        trained = _trained(data, place, kind, start(place, data.network.width), recipe)
        for number, question in enumerate(data.questions):
            own = jax.tree.map(lambda leaf, number=number: np.asarray(leaf[number], dtype=np.float64), trained)
            made[question.name][place] = FoundVariable(place, finish(own, number))
    found = {}
    for question in data.questions:
        scores = {
            place: interchange_accuracy(one, question, data.network, data.output) or 0.0
            for place, one in made[question.name].items()
        }
        found[question.name] = made[question.name][earliest_best(scores)]
    return found


def _trained(data: VariableData, place: str, kind: SwapMap, start: list[Tree], recipe: SwapRecipe) -> Tree:
    network, output = data.network, data.output
    assert isinstance(output.domain, Finite)
    numerical = output.encoding is Encoding.NUMERICAL
    low, high = output.domain.ends if numerical else (0.0, 1.0)
    scale = 1.0 / max(high - low, 1e-6)
    tensors = []
    for question in data.questions:
        pairs = question.pairs
        base, source = (network.streams(ids)[place] for ids in (pairs.base, pairs.source))
        codes = np.maximum(pairs.answers, 0)
        none = codes == output.domain.index.get(None, -1)
        wanted = np.where(none, 0.0, output.domain.numbers[codes] * scale) if numerical else codes.astype(np.float64)
        tensors.append((base, source, pairs.swapped, wanted, none))
    stacked = tuple(jnp.asarray(np.stack(part), dtype=None if part[0].dtype == bool else jnp.float32)
                    for part in zip(*tensors, strict=True))  # fmt: skip
    parameters = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf, jnp.float32) for leaf in leaves]), *start)
    weights = {name: jnp.asarray(array, jnp.float32) for name, array in network.parameters.named()}
    keys = jax.random.split(jax.random.key(recipe.seed), len(start))
    answers = _Answers(output.start, output.stop, numerical, scale)
    passes = len(start) * recipe.steps * min(BATCH, stacked[0].shape[1])
    count_passes(passes, passes)
    return _train(network.suffix(place), kind, answers, recipe.steps, weights, stacked, parameters, keys, recipe.rate)


@partial(jax.jit, static_argnames=("suffix", "kind", "answers", "steps"))
def _train(
    suffix: Suffix,
    kind: SwapMap,
    answers: _Answers,
    steps: int,
    weights: Tree,
    stacked: tuple[Array, ...],
    parameters: Tree,
    keys: Array,
    rate: Array,
) -> Tree:
    model, activation = Parameters.of(weights), activation_in(suffix.activation, jax.nn)

    def loss(own: Tree, batch: tuple[Array, ...], progress: Array) -> Array:
        base, source, swapped, wanted, none = batch
        stream = jnp.where(swapped[..., None], kind.swap(own, base, source, progress), base)
        with jax.default_matmul_precision("highest"):
            logits = suffix.logits(model, stream, NAMESPACE, activation)
        return answers.loss(logits, wanted, none) + kind.penalty(own, progress)

    schedule = optax.cosine_decay_schedule(1.0, steps)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.scale_by_schedule(schedule))

    def alone(own: Tree, pairs: tuple[Array, ...], key: Array) -> Tree:
        def step(state: tuple[Tree, Any], given: tuple[Array, Array]) -> tuple[tuple[Tree, Any], None]:
            (own, moments), (key, progress) = state, given
            rows = jax.random.randint(key, (min(BATCH, pairs[0].shape[0]),), 0, pairs[0].shape[0])
            slope = jax.grad(loss)(own, tuple(part[rows] for part in pairs), progress)
            change, moments = optimiser.update(slope, moments)
            return (jax.tree.map(lambda old, move: old - rate * move, own, change), moments), None

        progress = jnp.linspace(0, 1, steps)
        (own, _), _ = jax.lax.scan(step, (own, optimiser.init(own)), (jax.random.split(key, steps), progress))
        return own

    return jax.vmap(alone)(parameters, stacked, keys)
