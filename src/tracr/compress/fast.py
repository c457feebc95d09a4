"""Our optimiser of the same objective: exact starts, starts with needed reads, random starts, second-order steps.

Seven things make it fast. (1) A closed form makes all reads of sub-layers exact. From such a start only the outputs
have to be found; if it has too many dimensions, the surplus ones are pulled to zero while the loss stays low. (2)
Targets and inputs are fixed, so a few inputs in full batch replace an endless stream of batches. (3) Sharp attention
makes plateaus. Half of the random starts therefore begin with attention scores multiplied by a small number, which
grows to 1; the targets of the compiled model are softened in the same way. (4) Near a minimum, Levenberg-Marquardt
steps converge in tens of iterations, where first-order steps take 10⁵. (5) The other half of the random starts has
weight decay, as the paper's recipe has; docs/compression.md compares runs with and without it. (6) If exact reads do
not fit, equations without plateaus (`needed.py`) give starts with the reads that are needed. (7) If second-order steps
are cheap, they also replace Adam from there, with softened attention and weight decay, in rounds (`rounds.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.closed import exact_projection, unmet
from tracr.compress.needed import fitting, needs_of, solved
from tracr.compress.objective import Objective, Params
from tracr.compress.polish import BLOCK, Polish
from tracr.compress.readings import seen
from tracr.compress.rounds import FIRST, ITERATIONS, RUNS, SOFTNESS, decay_at, disturbed, sharpness_at
from tracr.compress.sgd import starts
from tracr.compress.task import Task
from tracr.extras import need

__all__ = ["FastRecipe", "fast"]

Array = NDArray[Any]
PIECES = 5  # pieces of a descent; progress is reported after each
LARGEST_CURVATURE = 1500  # with more trained numbers than this, the curvature matrix takes too long
WORK, FEWEST = 2e9, 32  # most multiplications of a curvature matrix; they limit its inputs, but not below FEWEST
CHEAP = 2e8  # with more multiplications than this, there are no rounds
PULLS = (1e-4, 30.0)  # the weight of surplus columns in the loss, first and last


@dataclass(frozen=True)
class FastRecipe:
    """The settings of the search: `starts` random starts, `steps` of Adam each, `polish` second-order iterations of the
    `kept` best.

    The same number of runs starts from exact reads; if these are too wide, `shrink` iterations make them narrower, and
    `needed` runs start from the reads that are needed. If `starts`, `shrink` or `needed` is 0, that kind of start is
    left out. If exact reads are too wide and a second-order step is cheap (few inputs and dimensions), `rounds` of such
    steps with softened attention and weight decay (`rounds.py`) replace all starts but needed ones. A loss of `enough`
    ends the search.
    """

    starts: int = 48
    needed: int = 16
    steps: int = 3000
    learning_rate: float = 1e-2
    softest: float = 4.0  # the logit gap (of `gap`) at the beginning of soft starts
    scale: float = 0.1  # standard deviation of soft starts
    decay: float = 0.5  # weight decay of sharp starts
    inputs: int = 128
    kept: int = 4
    polish: int = 120
    shrink: int = 200
    rounds: int = 6
    enough: float = 1e-9


@dataclass(frozen=True, eq=False)
class Searched:
    """The result of a search: the best runs, best first, the final loss of every start, and losses over time."""

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
    """Search for the projection with the lowest loss. Stops early at a loss of `recipe.enough` and on Ctrl-C."""
    search = _Search(objective, dim, seed, recipe, gap, train_weights, progress)
    search.run()
    return search.result()


class _Search:
    def __init__(
        self,
        objective: Objective,
        dim: int,
        seed: int,
        recipe: FastRecipe,
        gap: float,
        train_weights: bool,
        progress: Any,
    ) -> None:
        self.jax, self.jnp = objective.jax, objective.jnp
        self.objective, self.dim, self.seed, self.recipe = objective, dim, seed, recipe
        self.train_weights, self.progress = train_weights, progress
        self.part = _on(objective, objective.task.sample(recipe.inputs))
        self.fine = _on(objective, objective.task.sample(2 * recipe.inputs), np.float64)
        self.curved = _on(objective, objective.task.sample(self._inputs()), np.float64)
        self.softest = min(1.0, recipe.softest / gap)
        self.evaluate = self.jax.jit(_on(objective, objective.task, np.float64).loss)
        self.polishes: dict[int, Polish] = {}
        self.solved: dict[int, Array] = {}  # starts with needed reads
        self.ended: list[tuple[float, Params]] = []
        self.others = 0  # the runs before this one had their second-order steps
        self.started: list[float] = []
        self.clock = time.perf_counter()
        self.times: list[tuple[float, float]] = []
        self.interrupted = False

    def _inputs(self) -> int:
        """The number of inputs for second-order steps: the curvature costs their residuals times numbers squared."""
        return int(min(2 * self.recipe.inputs, max(FEWEST, WORK / self._work())))

    def _work(self) -> float:
        """The multiplications of a curvature matrix for one input."""
        task = self.objective.task
        width = task.network.width
        residuals = task.ids.shape[1] * width * (len(task.network.parts) + 1)
        return float(residuals * (width * self.dim * self.objective.sites.count) ** 2)

    def run(self) -> None:
        """Search, one kind of start after another, until the loss is small enough."""
        try:
            for search in self.searches():
                search()
                if self.done():
                    return
            if not self.ended:  # the model is too large for all but random starts
                self.random(self.few())
        except KeyboardInterrupt:
            self.interrupted = True

    def searches(self) -> list[Callable[[], None]]:
        """Exact starts, then random ones. A few random starts come first (second, if exact ones fit).

        If exact reads do not fit, needed ones come before all others, and rounds replace the others if they are cheap.
        """
        recipe, exact = self.recipe, exact_projection(seen(self.fine.task), outputs=False)
        fits = exact.shape[1] <= self.dim
        cheap = self._work() * len(self.curved.task) <= CHEAP and not self.train_weights
        found: list[Callable[[], None]] = []
        if not fits and recipe.rounds and cheap:
            found = [self.rounds]
        else:
            if fits or recipe.shrink:
                found.append(partial(self.exact, exact))
            if recipe.starts:
                found.append(partial(self.random, recipe))
                if self.few() != recipe and recipe.enough > 0:
                    found.insert(int(fits), partial(self.random, self.few()))
        if not fits and recipe.needed:
            found.insert(0, self.needed)
        return found

    def few(self) -> FastRecipe:
        """The recipe with few random starts."""
        return replace(self.recipe, starts=min(self.recipe.starts, 8), steps=min(self.recipe.steps, 600))

    def best(self) -> float:
        return min((loss for loss, _ in self.ended), default=np.inf)

    def done(self) -> bool:
        return self.best() <= self.recipe.enough

    def keep(self, params: Params, stage: str, step: int) -> list[float]:
        """Record runs with their losses on all inputs."""
        losses = []
        for number in range(len(params["W"])):
            one = self.jax.tree.map(lambda array, n=number: np.asarray(array[n]), params)
            losses.append(self.measure(one))
            self.ended.append((losses[-1], one))
        best = self.best()
        self.times.append((time.perf_counter() - self.clock, best))
        self.tell(stage, step, best)
        return losses

    def measure(self, params: Params) -> float:
        """The loss of a run on all inputs."""
        with self.jax.enable_x64(True):
            loss = float(self.evaluate(self.jax.tree.map(lambda array: np.asarray(array, dtype=np.float64), params)))
        return loss if np.isfinite(loss) else np.inf

    def tell(self, stage: str, step: int, loss: float) -> None:
        if self.progress is not None:
            self.progress(stage, step, loss)

    # Starts that read exactly

    def exact(self, exact: Array) -> None:
        """Run from starts with exact reads of sub-layers and random outputs, made narrower if they are too wide."""
        width, count = exact.shape[0], self.recipe.kept
        columns = max(self.dim, exact.shape[1])
        rng, free = np.random.default_rng(self.seed), unmet(seen(self.fine.task))
        W = []
        for scale in np.geomspace(width**-0.5, 1.0, count):
            turn = np.linalg.qr(rng.normal(size=(columns, columns)))[0][: exact.shape[1]]
            W.append(exact @ turn + free @ rng.normal(scale=scale, size=(width, columns)))
        params = starts(self.objective, columns, [0] * count, None, self.train_weights)
        params["W"] = np.repeat(np.stack(W)[:, None], self.objective.sites.count, axis=1)
        if _size(params) // count > LARGEST_CURVATURE:
            return
        self.keep(self.cut(params), "exact", 0)
        if columns > self.dim:
            self.shrink(params, columns - self.dim)
        if not self.done():
            self.second_order(self.ended[-count:])
        self.started += [loss for loss, _ in self.ended[-count:]]

    def shrink(self, params: Params, surplus: int) -> None:
        """Pull the smallest columns to zero, with growing weight."""
        pulls = np.geomspace(*PULLS, max(1, self.recipe.shrink // BLOCK))
        self.keep(self.cut(self.improve(params, surplus, pulls)), "shrink", self.recipe.shrink)

    def cut(self, params: Params) -> Params:
        return params | {"W": params["W"][..., : self.dim]}

    # Starts that read what is needed

    def needed(self) -> None:
        """Run from starts that read what is needed, and take second-order steps from the best."""
        task = fitting(self.fine.task, self.dim)
        if task is None:
            return
        params = self.with_needed(task, range(self.recipe.needed))
        self.started += self.keep(params, "needed", 0)
        if not self.done():
            self.second_order(self.ended)
        self.others = len(self.ended)

    def with_needed(self, task: Task, numbers: range) -> Params:
        """Starts that read what is needed."""
        needs = needs_of(task)
        for number in numbers:
            if number not in self.solved:
                self.solved[number] = solved(needs, self.dim, np.random.default_rng([self.seed, number]))
        W = [self.solved[number] for number in numbers]
        params = starts(self.objective, self.dim, [0] * len(numbers), None, self.train_weights)
        return params | {"W": np.repeat(np.stack(W)[:, None], self.objective.sites.count, axis=1)}

    # Random starts: first order

    def random(self, recipe: FastRecipe) -> None:
        """Descend from random starts, half of them soft, and take second-order steps from the best."""
        count = max(1, recipe.starts // 2)
        drawn = np.random.SeedSequence(self.seed).generate_state(2 * count).tolist()
        advance = self.descent(recipe)
        sharp = (drawn[:count], None, recipe.decay, 1.0)
        soft = (drawn[count:], recipe.scale, 0.0, self.softest)
        for seeds, scale, decay, softest in (sharp, soft):
            params = starts(self.part, self.dim, seeds, scale, self.train_weights)
            self.descend(advance, recipe.steps, params, decay, softest)
            if self.done():
                return
        self.second_order(self.ended[self.others :])

    def descent(self, recipe: FastRecipe) -> Any:
        """Adam, and a jitted function that takes its steps, with weight decay, from step `start` on, in all runs."""
        jax, jnp = self.jax, self.jnp
        optax = need("optax", "jax")
        rate = optax.cosine_decay_schedule(recipe.learning_rate, recipe.steps, 1e-2)
        update = optax.adam(rate, b1=0.9, b2=0.99)
        gradient = jax.vmap(jax.grad(self.part.loss), (0, None, None, None))
        ramp = 0.6 * recipe.steps

        def advance(params: Any, state: Any, start: Any, decay: Any, softest: Any, size: int) -> Any:
            def step(carry: Any, number: Any) -> Any:
                params, state = carry
                sharpness = jnp.minimum(1.0, softest ** (1 - number / ramp))
                slope = gradient(params, None, sharpness, self.part.exact(sharpness))
                change, state = update.update(slope, state, params)
                shorter = 1 - decay * rate(number)
                return (jax.tree.map(lambda old, new: shorter * old + new, params, change), state), None

            (params, state), _ = jax.lax.scan(step, (params, state), start + jnp.arange(size))
            return params, state

        return update, jax.jit(advance, static_argnums=5)

    def descend(self, advance: Any, steps: int, params: Params, decay: float, softest: float) -> None:
        """Run Adam; the runs that are already sharp are recorded after each piece."""
        update, run = advance
        stage = "descent" if softest == 1.0 else "soft descent"
        state, size = update.init(params), -(-steps // PIECES)
        for piece in range(1, PIECES + 1):
            params, state = run(params, state, (piece - 1) * size, decay, softest, size)
            if piece == PIECES:
                self.started += self.keep(params, stage, piece * size)
            elif softest == 1.0:
                self.keep(params, stage, piece * size)
                if self.done():
                    return
            else:
                self.tell(stage, piece * size, self.best())

    # Second order

    def second_order(self, found: list[tuple[float, Params]]) -> None:
        """Levenberg-Marquardt from the best runs found."""
        best = sorted(found, key=lambda one: one[0])[: 4 * self.recipe.kept]
        chosen = _different(best, self.recipe.kept)
        if _size(chosen[0]) > LARGEST_CURVATURE or not np.isfinite(best[0][0]):
            return
        again = [chosen[number % len(chosen)] for number in range(self.recipe.kept)]  # one size: compiled once
        params = self.jax.tree.map(lambda *arrays: np.stack(arrays), *again)
        self.keep(self.improve(params, 0, [0.0] * -(-self.recipe.polish // BLOCK)), "polish", self.recipe.polish)

    def rounds(self) -> None:
        """Rounds with softened attention and weight decay, and a last polish of the best runs."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(1,)))
        for number in range(self.recipe.rounds):
            params, softness = self.new_round(number) if FIRST * number < self.recipe.rounds else self.next_round(rng)
            self.started += self.keep(self.round(params, softness), "rounds", number + 1)
            if self.done():
                return
        self.second_order(self.ended)

    def new_round(self, number: int) -> tuple[Params, Array]:
        """Starts that read what is needed (random ones, if the equations for these take too long)."""
        task, numbers = fitting(self.fine.task, self.dim), range(number * RUNS, (number + 1) * RUNS)
        if task is None:
            params = starts(self.objective, self.dim, list(numbers), None, self.train_weights)
        else:
            params = self.with_needed(task, numbers)
        return params, np.full(RUNS, SOFTNESS)

    def next_round(self, rng: np.random.Generator) -> tuple[Params, Array]:
        """The best runs, disturbed."""
        best = _different(sorted(self.ended, key=lambda one: one[0]), self.recipe.kept)
        W, softness = disturbed(rng, np.stack([params["W"] for params in best]))
        again = [best[number % len(best)] for number in range(RUNS)]
        return self.jax.tree.map(lambda *arrays: np.stack(arrays), *again) | {"W": W}, softness

    def round(self, params: Params, softness: Array) -> Params:
        """Second-order steps while attention gets sharp and weight decay ends."""
        jax, jnp = self.jax, self.jnp
        blocks = -(-min(self.recipe.polish, ITERATIONS) // BLOCK)
        with jax.enable_x64(True):
            params = jax.tree.map(lambda array: jnp.asarray(array, dtype=np.float64), params)
            polish = self.polish_of(params, 0)
            rows, damping = polish.rows(params), jnp.full(len(softness), 1e-2)
            for block in range(blocks):
                done = block / blocks
                rows, damping, _ = polish.iterate_soft(
                    rows, damping, decay_at(done), jnp.asarray(sharpness_at(softness, done))
                )
            found: Params = jax.tree.map(np.asarray, jax.vmap(polish.params)(rows))
        return found

    def polish_of(self, params: Params, surplus: int) -> Polish:
        """Second-order steps for runs of this form, compiled once."""
        polish = self.polishes.get(surplus)
        if polish is None:
            example = self.jax.tree.map(lambda array: array[0], params)
            polish = self.polishes[surplus] = Polish(self.curved, example, surplus)
        return polish

    def improve(self, params: Params, surplus: int, pulls: Sequence[float] | Array) -> Params:
        """Second-order steps with surplus columns pulled to zero, until they converge or the loss is small enough."""
        jax, jnp = self.jax, self.jnp
        stage, enough, still = "shrink" if surplus else "polish", self.recipe.enough, 0
        with jax.enable_x64(True):
            params = jax.tree.map(lambda array: jnp.asarray(array, dtype=np.float64), params)
            polish = self.polish_of(params, surplus)
            rows = polish.rows(params)
            damping, before = jnp.full(len(rows), 1e-2), np.full(len(rows), np.nan)
            for number, pull in enumerate(pulls):
                rows, damping, losses = polish.iterate(rows, damping, pull)
                after = np.asarray(losses)
                still = still + 1 if not surplus and (before - after <= 1e-4 * before).all() else 0
                self.tell(stage, (number + 1) * BLOCK, float(after.min()))
                best = self.cut(polish.params(rows[int(after.argmin())]))
                if still >= 2 or (after.min() <= enough and self.measure(best) <= enough):
                    break
                before = after
            found: Params = jax.tree.map(np.asarray, jax.vmap(polish.params)(rows))
        return found

    def result(self) -> Searched:
        """The runs, best first."""
        order = sorted(self.ended, key=lambda found: found[0])[: self.recipe.kept]
        times = np.array(self.times).reshape(-1, 2)
        params = self.jax.tree.map(lambda *arrays: np.stack(arrays), *[params for _, params in order]) if order else {}
        losses = np.array([loss for loss, _ in order])
        return Searched(params, losses, np.array(self.started), times[:, 0], times[:, 1], self.interrupted)


def _on(objective: Objective, task: Task, dtype: Any = None) -> Objective:
    """The same objective on another task."""
    return Objective(
        task,
        objective.sites,
        output_weight=objective.output_weight,
        layer_weight=objective.layer_weight,
        dtype=objective.dtype if dtype is None else dtype,
    )


def _size(params: Params) -> int:
    """The number of trained numbers."""
    return sum(np.size(array) for array in need("jax", "jax").tree.leaves(params))


def _different(found: list[tuple[float, Params]], count: int) -> list[Params]:
    """The `count` best, no two with nearly the same loss (a run can be in the list at several times)."""
    chosen: list[tuple[float, Params]] = []
    for loss, params in found:
        if len(chosen) < count and all(abs(loss - other) > 1e-3 * max(loss, 1e-12) for other, _ in chosen):
            chosen.append((loss, params))
    return [params for _, params in chosen]
