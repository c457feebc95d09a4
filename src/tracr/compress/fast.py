"""Our optimiser of the same objective: many starts at once, full batches, softened attention, second-order polish.

Three things make it fast. Targets and inputs are fixed, so a few inputs in full batch say as much as an endless stream
of batches. Sharp attention makes plateaus: half of the starts begin with scores multiplied by a small number (and the
targets of the compiled model softened alike), which then grows to 1. And near a minimum Levenberg-Marquardt steps
converge in tens of iterations where first-order steps take 10⁵.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.objective import Objective, Params
from tracr.compress.sgd import starts
from tracr.compress.task import Task
from tracr.extras import need

__all__ = ["FastRecipe", "fast"]

Array = NDArray[Any]
PIECES = 5  # of a descent, between which the user hears of it
LARGEST = 1500  # trained numbers beyond which the curvature matrix is not worth its time


@dataclass(frozen=True)
class FastRecipe:
    """How to search: `starts` in all, `steps` of Adam, then `polish` second-order iterations of the best `kept`."""

    starts: int = 48
    steps: int = 3000
    learning_rate: float = 1e-2
    softest: float = 4.0  # the logit gap (of `gap`) the soft starts begin with
    scale: float = 0.1
    inputs: int = 128
    kept: int = 4
    polish: int = 120
    enough: float = 0.0


@dataclass(frozen=True, eq=False)
class Searched:
    """The runs that were polished, best first, the losses of every start when it ended, and losses over time."""

    params: Params
    losses: Array
    started: Array
    times: Array
    curve: Array
    interrupted: bool


def fast(
    objective: Objective,
    dim: int,
    seed: int,
    recipe: FastRecipe,
    gap: float,
    train_weights: bool = False,
    progress: Callable[[str, int, float], None] | None = None,
) -> Searched:
    """Search for the projection with the lowest loss. Stops early at a loss of `recipe.enough`, and at Ctrl-C."""
    search = _Search(objective, dim, recipe, gap, progress)
    search.run(seed, train_weights)
    return search.result()


class _Search:
    def __init__(self, objective: Objective, dim: int, recipe: FastRecipe, gap: float, progress: Any) -> None:
        self.jax, self.jnp = objective.jax, objective.jnp
        self.whole, self.dim, self.recipe, self.progress = objective, dim, recipe, progress
        self.part = _on(objective, objective.task.sample(recipe.inputs))
        self.softest = min(1.0, recipe.softest / gap)
        self.evaluate = self.jax.jit(self.jax.vmap(objective.loss))
        self.ended: list[tuple[float, Params]] = []
        self.started: list[float] = []
        self.clock = time.perf_counter()
        self.times: list[tuple[float, float]] = []
        self.interrupted = False

    def run(self, seed: int, train_weights: bool) -> None:
        """One search; before it a small one, which may be enough, where that is said."""
        whole = self.recipe
        small = replace(whole, starts=min(whole.starts, 8), steps=min(whole.steps, 600))
        try:
            for recipe in (small, whole) if whole.enough > 0 else (whole,):
                self.recipe = recipe
                self.search(seed, train_weights)
                if self.best() <= recipe.enough:
                    return
        except KeyboardInterrupt:
            self.interrupted = True

    def search(self, seed: int, train_weights: bool) -> None:
        recipe = self.recipe
        count = max(1, recipe.starts // 2)
        drawn = np.random.SeedSequence(seed).generate_state(2 * count).tolist()
        advance = self.descent()
        for seeds, softest in ((drawn[:count], 1.0), (drawn[count:], self.softest)):
            self.descend(advance, starts(self.part, self.dim, seeds, recipe.scale, train_weights), softest)
            if self.best() <= recipe.enough:
                return
        self.second_order()

    def best(self) -> float:
        return min((loss for loss, _ in self.ended), default=np.inf)

    def keep(self, params: Params, stage: str, done: int) -> Array:
        """Note runs with their losses on all inputs."""
        losses = np.asarray(self.evaluate(params), dtype=np.float64)
        losses = np.where(np.isfinite(losses), losses, np.inf)
        for number, loss in enumerate(losses.tolist()):
            self.ended.append((loss, self.jax.tree.map(lambda array, n=number: np.asarray(array[n]), params)))
        self.note(stage, done)
        return losses

    def note(self, stage: str, done: int) -> None:
        best = self.best()
        self.times.append((time.perf_counter() - self.clock, best))
        if self.progress is not None:
            self.progress(stage, done, best)

    # First order

    def descent(self) -> Any:
        """A jitted function: some steps of Adam for runs, from step `start` on."""
        jax, jnp, recipe = self.jax, self.jnp, self.recipe
        optax = need("optax", "jax")
        update = optax.adam(optax.cosine_decay_schedule(recipe.learning_rate, recipe.steps, 1e-2), b1=0.9, b2=0.99)
        gradient = jax.vmap(jax.grad(self.part.loss), (0, None, None, None))
        ramp = 0.6 * recipe.steps

        def advance(params: Any, state: Any, start: Any, softest: Any, size: int) -> Any:
            def step(carry: Any, number: Any) -> Any:
                params, state = carry
                sharpness = jnp.minimum(1.0, softest ** (1 - number / ramp))
                slope = gradient(params, None, sharpness, self.part.exact(sharpness))
                change, state = update.update(slope, state, params)
                return (optax.apply_updates(params, change), state), None

            (params, state), _ = jax.lax.scan(step, (params, state), start + jnp.arange(size))
            return params, state

        return update, jax.jit(advance, static_argnums=4)

    def descend(self, advance: Any, params: Params, softest: float) -> None:
        """Adam; what is sharp already is looked at on the way."""
        update, run = advance
        state, size = update.init(params), -(-self.recipe.steps // PIECES)
        for piece in range(PIECES):
            params, state = run(params, state, piece * size, softest, size)
            last = piece == PIECES - 1
            if last or softest == 1.0:
                losses = self.keep(params, "descent" if softest == 1.0 else "soft descent", (piece + 1) * size)
                if last:
                    self.started += losses.tolist()
                if self.best() <= self.recipe.enough:
                    return
            elif self.progress is not None:
                self.progress("soft descent", (piece + 1) * size, self.best())

    # Second order

    def second_order(self) -> None:
        """Levenberg-Marquardt from the best runs."""
        jax, recipe = self.jax, self.recipe
        best = sorted(self.ended, key=lambda found: found[0])[: 4 * recipe.kept]
        chosen = _different(best, recipe.kept)
        size = sum(np.size(array) for array in jax.tree.leaves(chosen[0]))
        if size > LARGEST or not np.isfinite(best[0][0]):
            return
        with jax.enable_x64(True):
            fine = _on(self.whole, self.whole.task.sample(2 * recipe.inputs), np.float64)
            polish = _Polish(fine)
            params = jax.tree.map(lambda *arrays: self.jnp.asarray(np.stack(arrays), dtype=np.float64), *chosen)
            stack, back = polish.flat(params)
            carry = polish.begin(stack)
            still = 0
            for number in range(0, recipe.polish, 5):
                before = np.asarray(carry[2])
                carry = polish.iterate(carry)
                after = np.asarray(carry[2])
                still = still + 1 if (before - after <= 1e-4 * before).all() else 0
                self.times.append((time.perf_counter() - self.clock, min(self.best(), float(after.min()))))
                if self.progress is not None:
                    self.progress("polish", number + 5, float(after.min()))
                if still >= 2 or after.min() < max(1e-20, recipe.enough / 4):
                    break
            polished = [jax.tree.map(np.asarray, back(row)) for row in carry[0]]
        count = max(1, recipe.starts // 2)  # as many as before, some several times: nothing is compiled again
        again = [polished[number % len(polished)] for number in range(count)]
        stacked = jax.tree.map(lambda *arrays: self.jnp.asarray(np.stack(arrays), dtype=self.whole.dtype), *again)
        losses = np.asarray(self.evaluate(stacked), dtype=np.float64)
        self.ended += [(loss, one) for loss, one in zip(losses.tolist(), polished, strict=False) if np.isfinite(loss)]
        self.note("polish", recipe.polish)

    def result(self) -> Searched:
        """The runs, best first."""
        order = sorted(self.ended, key=lambda found: found[0])[: self.recipe.kept]
        times = np.array(self.times).reshape(-1, 2)
        params = self.jax.tree.map(lambda *arrays: np.stack(arrays), *[params for _, params in order]) if order else {}
        losses = np.array([loss for loss, _ in order])
        return Searched(params, losses, np.array(self.started), times[:, 0], times[:, 1], self.interrupted)


class _Polish:
    """Levenberg-Marquardt on runs side by side.

    The loss is a sum of squares c r² (of sub-layers and numbers) and of cross-entropies of logits z with p = softmax z,
    weighted by c. Let J be the Jacobian of r or z. For the squares slope and curvature are Aᵀb and AᵀA, where
    A = √(2c) J and b = √(2c) r. For cross-entropy with the one-hot target y they are c Jᵀ(p − y) and (Gauss-Newton)
    c Jᵀ(diag p − p pᵀ)J: again Aᵀb and AᵀA, with A = √c diag(√p) (J − 1 pᵀJ) and b = √c (√p − y/√p), as Σp = Σy.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective, self.jax, self.jnp = objective, objective.jax, objective.jnp
        self.iterate = self.jax.jit(self.jax.vmap(self._iterations))
        self._back: Any = None

    def flat(self, params: Params) -> tuple[Any, Any]:
        """Runs as rows of numbers, and the way back."""
        ravel = need("jax.flatten_util", "jax").ravel_pytree
        self._back = ravel(self.jax.tree.map(lambda array: array[0], params))[1]
        return self.jax.vmap(lambda one: ravel(one)[0])(params), self._back

    def begin(self, rows: Any) -> Any:
        """The state before the first iteration."""
        value = self.jax.jit(self.jax.vmap(lambda row: self.objective.loss(self._back(row))))(rows)
        return rows, self.jnp.full(len(rows), 1e-2), value

    def _iterations(self, carry: Any) -> Any:
        return self.jax.lax.fori_loop(0, 5, lambda _, carry: self._iteration(*carry), carry)

    def _iteration(self, row: Any, damping: Any, value: Any) -> Any:
        jnp = self.jnp
        J, residuals = self._system(row)
        curvature, slope = J.T @ J, J.T @ residuals
        diagonal = jnp.diag(curvature)
        floor = 1e-6 * diagonal.max() + 1e-12
        step = jnp.linalg.solve(curvature + damping * jnp.diag(diagonal + floor), -slope)
        new = self.objective.loss(self._back(row + step))
        better = new < value
        damping = jnp.clip(jnp.where(better, damping * 0.3, damping * 4), 1e-12, 1e8)
        return jnp.where(better, row + step, row), damping, jnp.where(better, new, value)

    def _system(self, row: Any) -> tuple[Any, Any]:
        """The rows A and b of the class's docstring, one under the other."""
        jax, jnp, objective, task = self.jax, self.jnp, self.objective, self.objective.task

        def run(row: Any) -> Any:
            found = objective.forward(self._back(row))
            return found, found

        (slopes, logit_slopes), (outs, logits) = jax.jacfwd(run, has_aux=True)(row)
        real = objective.array(task.real)
        tokens = real.at[:, 0].set(0.0)
        weight = jnp.sqrt(2 * objective.layer_weight * real / real.sum())[..., None]
        targets = [objective.array(target) for target in task.targets]
        A = [weight[..., None] * slope for slope in slopes]
        b = [weight * (out - target) for out, target in zip(outs, targets, strict=True)]
        share = jnp.sqrt(objective.output_weight * tokens / tokens.sum())[..., None]
        for output in task.outputs:
            z, slope = logits[..., output.start : output.stop], logit_slopes[..., output.start : output.stop, :]
            if output.categorical:
                p = jnp.maximum(jax.nn.softmax(z), 1e-12)
                y = jax.nn.one_hot(output.wanted, z.shape[-1], dtype=objective.dtype)
                mean = (p[..., None] * slope).sum(axis=-2, keepdims=True)
                A.append((share * jnp.sqrt(p))[..., None] * (slope - mean))
                b.append(share * (jnp.sqrt(p) - y / jnp.sqrt(p)))
            else:
                A.append(jnp.sqrt(2.0) * share[..., None] * slope)
                b.append(jnp.sqrt(2.0) * share * (z - objective.array(output.wanted)))
        return (
            jnp.concatenate([block.reshape(-1, row.size) for block in A]),
            jnp.concatenate([block.reshape(-1) for block in b]),
        )


def _on(objective: Objective, task: Task, dtype: Any = None) -> Objective:
    """The same objective on another task."""
    return Objective(
        task,
        objective.sites,
        output_weight=objective.output_weight,
        layer_weight=objective.layer_weight,
        dtype=objective.dtype if dtype is None else dtype,
    )


def _different(found: list[tuple[float, Params]], count: int) -> list[Params]:
    """The best few, no two with nearly the same loss (one run may be there twice, earlier and later)."""
    chosen: list[tuple[float, Params]] = []
    for loss, params in found:
        if len(chosen) < count and all(abs(loss - other) > 1e-3 * max(loss, 1e-12) for other, _ in chosen):
            chosen.append((loss, params))
    return [params for _, params in chosen]
