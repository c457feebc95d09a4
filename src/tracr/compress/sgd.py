"""The paper's recipe: AdamW on random batches, for any number of runs in one compiled program.

Runs differ only in their starts. Step t draws the same batch for all runs, so a run does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.objective import Objective, Params
from tracr.extras import need

__all__ = ["Recipe", "RecipeTrainer", "Trained", "padded_starts", "starts", "train"]

Array = NDArray[Any]
Progress = Callable[[int, float], None]
"""Called with the steps done and the best run's loss."""


@dataclass(frozen=True)
class Recipe:
    """The training settings, by default the paper's. The learning rate falls linearly over the first half."""

    steps: int = 300_000
    batch: int = 256
    learning_rate: float = 1e-3
    final_rate: float = 1e-6
    weight_decay: float = 0.1
    b1: float = 0.9
    b2: float = 0.99
    chunk: int = 1000


@dataclass(frozen=True, eq=False)
class Trained:
    """The runs after training: parameters with a leading axis of runs, their losses over time and at the end.

    `curve` [points, runs] holds batch losses, averaged over the steps up to `steps[point]`; `losses` [runs] are those
    on all inputs. `interrupted`: the training was stopped with Ctrl-C.
    """

    params: Params
    steps: Array
    curve: Array
    losses: Array
    interrupted: bool

    @property
    def best(self) -> int:
        """The run with the lowest loss."""
        return int(np.where(np.isfinite(self.losses), self.losses, np.inf).argmin())

    def run(self, number: int) -> Params:
        """The parameters of one run."""
        jax = need("jax", "jax")
        chosen: Params = jax.tree.map(lambda array: np.asarray(array[number]), self.params)
        return chosen


def starts(objective: Objective, dim: int, seeds: list[int], scale: float | None, train_weights: bool) -> Params:
    """Random projections, one per seed: normal, with standard deviation `scale`, by default 1/√D."""
    jax, jnp = objective.jax, objective.jnp
    width = objective.task.network.width
    shape = (objective.sites.count, width, dim)
    spread = width**-0.5 if scale is None else scale
    W = np.stack([np.random.default_rng(seed).normal(scale=spread, size=shape) for seed in seeds])
    params: Params = {"W": jnp.asarray(W, dtype=objective.dtype)}
    if train_weights:
        params["parts"] = jax.tree.map(lambda array: jnp.stack([array] * len(seeds)), objective.weights())
    return params


def padded_starts(
    objective: Objective, runs: Sequence[tuple[int, int]], scale: float | None = None, least: int = 0
) -> Params:
    """The starts of runs (dim, seed) in one array: a run of d dimensions is padded to the widest, or to `least` columns
    if these are more, with zero columns.

    A zero column has no gradient and stays zero, so the padding changes no run.
    """
    widest = max(least, *(dim for dim, _ in runs))
    W = np.zeros((len(runs), objective.sites.count, objective.task.network.width, widest), dtype=objective.dtype)
    for number, (dim, seed) in enumerate(runs):
        W[number, :, :, :dim] = np.asarray(starts(objective, dim, [seed], scale, False)["W"][0])
    return {"W": objective.jnp.asarray(W)}


def optimiser(recipe: Recipe) -> Any:
    """AdamW with the recipe's schedule."""
    optax = need("optax", "jax")
    rate = optax.linear_schedule(recipe.learning_rate, recipe.final_rate, max(1, recipe.steps // 2))
    return optax.adamw(rate, b1=recipe.b1, b2=recipe.b2, weight_decay=recipe.weight_decay)


def train(
    objective: Objective, params: Params, recipe: Recipe, seed: int = 0, progress: Progress | None = None
) -> Trained:
    """Train all runs for `recipe.steps` steps, or until Ctrl-C, which keeps the result so far."""
    return RecipeTrainer(objective, recipe, seed).train(params, progress)


class RecipeTrainer:
    """Trains runs of one objective. The program is compiled once for each number of runs and dimensions."""

    def __init__(self, objective: Objective, recipe: Recipe, seed: int = 0) -> None:
        self._objective, self._recipe, self._seed = objective, recipe, seed
        self._update, self._optax = optimiser(recipe), need("optax", "jax")
        jax = objective.jax
        self._gradient = jax.vmap(jax.value_and_grad(objective.loss), (0, None))
        self._run = jax.jit(self._chunk, static_argnums=3)
        self._evaluate = jax.jit(jax.vmap(objective.loss))

    def train(self, params: Params, progress: Progress | None = None) -> Trained:
        """Train all runs for the recipe's steps, or until Ctrl-C, which keeps the result so far."""
        recipe = self._recipe
        state, done, interrupted = self._update.init(params), 0, False
        places: list[int] = []
        curve: list[Any] = []
        try:
            while done < recipe.steps:
                size = min(recipe.chunk, recipe.steps - done)
                params, state, loss = self._run(params, state, done, size)
                done += size
                places.append(done)
                curve.append(loss)  # stays on the device: copying it would wait for the chunk
                if progress is not None:
                    now = np.asarray(loss)
                    progress(done, float(np.min(now, initial=np.inf, where=np.isfinite(now))))
        except KeyboardInterrupt:
            interrupted = True
        losses = np.asarray(self._evaluate(params))
        found = np.array([np.asarray(loss) for loss in curve]).reshape(len(places), len(losses))
        return Trained(params, np.array(places), found, losses, interrupted)

    def _chunk(self, params: Any, state: Any, start: Any, size: int) -> Any:
        """Some steps of all runs: parameters, the optimiser's state and the mean losses."""
        jax, jnp, objective = self._objective.jax, self._objective.jnp, self._objective
        inputs = len(objective.task)
        batches = None
        if inputs > self._recipe.batch:
            key = jax.random.fold_in(jax.random.key(self._seed), start)
            batches = jax.random.randint(key, (size, self._recipe.batch), 0, inputs)
        total = jnp.zeros(params["W"].shape[0], dtype=objective.dtype)
        (params, state, total), _ = jax.lax.scan(self._step, (params, state, total), batches, length=size)
        return params, state, total / size

    def _step(self, carry: Any, batch: Any) -> Any:
        params, state, total = carry
        loss, slope = self._gradient(params, batch)
        change, state = self._update.update(slope, state, params)
        return (self._optax.apply_updates(params, change), state, total + loss), None
