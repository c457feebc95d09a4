"""Interchange distillation: twins learn to answer like their teacher, on inputs and under interventions.

All seeds train in one compiled program. A step draws lessons from a bank: a site by its share, then a lesson
where the teacher's answer changes or one where it does not. The shares are updated after every round, so that sites
where a twin still errs are drawn more often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from tracr.natural.answers import Answers
from tracr.natural.hints import Hints
from tracr.natural.lessons import Bank
from tracr.natural.network import Tree, TwinNetwork
from tracr.natural.teacher import Lesson

__all__ = ["State", "Trainer", "TwinRecipe"]

Array = NDArray[Any]
WRONG = 8_192  # the most lessons of each seed that are remembered as wrong
RATES = {"random": 2e-3, "compiled": 1e-5, "trained": 5e-4}  # the highest learning rate, by the start


@dataclass(frozen=True)
class TwinRecipe:
    """The training method: AdamW, a short warm-up, then a learning rate that falls as a cosine and stays low.

    A twin's weights are a running mean of those that are trained, so that it need not wait for the rate to fall.
    """

    steps: int = 12_000
    batch: int = 512
    start: str = "random"
    """The weights to begin with: see starts.py; "trained" are those of twins (finishing.py)."""
    warm_up: int = 200
    weight_decay: float = 1e-3
    clip: float = 1.0
    falling: float = 0.7
    """The part of the steps in which the learning rate falls."""
    lowest: float = 0.05
    """The learning rate at the end, as a part of the highest: twins that are not admitted yet keep improving."""
    round: int = 1_000
    changing: float = 0.6
    """The share of lessons where the teacher's answer changes, if there are both kinds."""
    weight: float = 4.0
    """The extra weight of a position whose answer changes."""
    wired: float = 0.6
    """The share of the sites that the teacher has; the others must not matter."""
    missed: float = 0.5
    """The share that is given to sites in proportion to the twin's error rate there."""
    hint: float = 1.0
    """The weight of hints (hints.py) at the first step; it falls to 0 on a straight line."""
    hinted: float = 0.5
    """The part of the steps that have hints."""
    spare: float = 0.0
    """The weight, relative to hints, of the squared outputs of spare components: those that the teacher lacks."""
    repeated: float = 0.25
    """The largest share of lessons that repeat those the twin got wrong."""
    repeats: int = 30
    """How often each of these is repeated in a round, if they are few."""
    averaged: float = 0.998
    """The part of the running mean that is kept in each step."""

    @property
    def learning_rate(self) -> float:
        """The highest learning rate; compiled weights are large, and higher rates destroy them."""
        return RATES[self.start]


@dataclass(frozen=True, eq=False)
class State:
    """All seeds in training: weights and optimiser state with a leading axis of seeds, and how many steps are done.

    Everything that the result depends on is here, so that a run continued from a checkpoint ends like a whole one.
    """

    weights: Tree
    averaged: Tree
    """The running mean of the weights: what is examined."""
    readers: Tree
    """The linear maps that read hints."""
    optimiser: Any
    shares: Array
    wrong: Array
    """For each seed the numbers of lessons that it got wrong, then -1, [seed, WRONG]."""
    done: int
    admitted: Tree
    """The weights of each admitted seed when it was admitted; of the others, zeros."""
    admitted_after: Array
    """The steps that were done when each seed was admitted, 0 if it is not admitted."""

    def admit(self, place: int) -> State:
        """The state with one more admitted seed."""
        admitted = {name: np.array(array) for name, array in self.admitted.items()}
        for name, array in admitted.items():
            array[place] = self.averaged[name][place]
        after = self.admitted_after.copy()
        after[place] = self.done
        return replace(self, admitted=admitted, admitted_after=after)

    def weights_of(self, place: int) -> tuple[Tree, int]:
        """The weights of a seed, when it was admitted or else now, and the steps done then."""
        after = int(self.admitted_after[place])
        weights = self.admitted if after else self.averaged
        return {name: array[place] for name, array in weights.items()}, after or self.done


@dataclass(frozen=True, eq=False)
class Trainer:
    """The parts that training needs: the twin's forward pass, the answers, and the lessons."""

    network: TwinNetwork
    answers: Answers
    bank: Bank
    wired: Array
    hints: Hints | None
    recipe: TwinRecipe

    @property
    def optimiser(self) -> Any:
        """AdamW with the recipe's schedule."""
        recipe = self.recipe
        highest, fall = recipe.learning_rate, max(1, int(recipe.falling * recipe.steps))
        rate = optax.warmup_cosine_decay_schedule(
            0.0, highest, min(recipe.warm_up, fall // 2), fall, recipe.lowest * highest
        )
        return optax.chain(
            optax.clip_by_global_norm(recipe.clip), optax.adamw(rate, b2=0.98, weight_decay=recipe.weight_decay)
        )

    def begin(self, weights: Tree) -> State:
        """The state before the first step."""
        seeds = len(weights["unembed.W_U"])
        shares = np.stack([self._shares(np.zeros(len(self.wired)))] * seeds)
        readers = {} if self.hints is None else self.hints.readers(weights["unembed.W_U"].shape[1], seeds)
        optimiser = jax.jit(jax.vmap(self.optimiser.init))((weights, readers))
        nothing = {name: np.zeros(array.shape, array.dtype) for name, array in weights.items()}
        wrong = np.full((seeds, WRONG), -1, dtype=np.int32)
        return State(weights, weights, readers, optimiser, shares, wrong, 0, nothing, np.zeros(seeds, dtype=np.int64))

    def _shares(self, missed: Array) -> Array:
        """How often each site is drawn."""
        there = (self.bank.changing + self.bank.staying) > 0
        wired, idle = self.wired & there, ~self.wired & there
        both = wired.any() and idle.any()
        part = self.recipe.wired if both else float(wired.any())
        base = part * wired / max(1, wired.sum()) + (1 - part) * idle / max(1, idle.sum())
        if not missed.any():
            return np.asarray(base)
        by_errors = there * missed
        return np.asarray((1 - self.recipe.missed) * base + self.recipe.missed * by_errors / by_errors.sum())

    def train(self, state: State, keys: Any) -> tuple[State, Array]:
        """The state after one more round, and the loss of each seed over it."""
        size = min(self.recipe.round, self.recipe.steps - state.done)
        shares = jnp.asarray(state.shares, dtype=jnp.float32)
        (weights, averaged, readers, optimiser), losses = self._round(
            (state.weights, state.averaged, state.readers, state.optimiser),
            self._lessons,
            shares,
            jnp.asarray(state.wrong),
            keys,
            state.done,
            size,
        )
        after = replace(state, weights=weights, averaged=averaged, readers=readers, optimiser=optimiser)
        return replace(after, done=state.done + size), np.asarray(losses)

    def weighed(self, state: State, missed: Array) -> State:
        """The state with shares set by the error rate of each seed at each site, [seed, site], and by the last shares.

        A rare error is seen in some rounds only; the mean with the last shares remembers it.
        """
        return replace(state, shares=(state.shares + np.stack([self._shares(row) for row in missed])) / 2)

    @cached_property
    def _lessons(self) -> Any:
        """The lessons and their hints, on the device."""
        return jax.tree.map(jnp.asarray, self.bank.lessons), () if self.hints is None else self.hints.held

    def _rows(self, shares: Any, wrong: Any, key: Any) -> Any:
        """The numbers of the lessons of one step."""
        keys = jax.random.split(key, 5)
        recipe, count = self.recipe, self.recipe.batch
        known = (wrong >= 0).sum()
        again = wrong[jnp.minimum(jnp.floor(jax.random.uniform(keys[3], (count,)) * known).astype(int), known - 1)]
        share = jnp.minimum(recipe.repeated, recipe.repeats * known / (recipe.round * count))
        return jnp.where(jax.random.uniform(keys[4], (count,)) < share, again, self._fresh(shares, keys[:3]))

    def _fresh(self, shares: Any, keys: Any) -> Any:
        """The numbers of lessons drawn by the shares of their sites."""
        count = self.recipe.batch
        site = jax.random.choice(keys[0], len(self.wired), (count,), p=shares)
        changing, staying = jnp.asarray(self.bank.changing)[site], jnp.asarray(self.bank.staying)[site]
        wanted = jax.random.uniform(keys[1], (count,)) < self.recipe.changing
        change = (wanted & (changing > 0)) | (staying == 0)
        among = jnp.where(change, changing, staying)
        place = jnp.floor(jax.random.uniform(keys[2], (count,)) * among).astype(int)
        return jnp.asarray(self.bank.start)[site] + jnp.where(change, 0, changing) + jnp.minimum(place, among - 1)

    def _loss(self, trained: tuple[Tree, Tree], lesson: Lesson, held: Any, hinted: Any) -> Any:
        weights, readers = trained
        written: dict[str, Any] | None = None if self.hints is None else {}
        before, after = self.network.intervened(weights, lesson.base, lesson.source, lesson.patch, written)
        token = self.network.tokens(lesson.base).astype(jnp.float32)
        moved = self.answers.apart(lesson.before, lesson.after) > 1
        weight = token * (1 + self.recipe.weight * moved)
        plain = (self.answers.loss(before, lesson.before) * token).sum() / token.sum()
        loss = plain + (self.answers.loss(after, lesson.after) * weight).sum() / weight.sum()
        if self.hints is None or written is None:
            return loss
        outputs = jnp.stack([written[name] for name in self.hints.writers], axis=1)
        loss = loss + hinted * self.hints.loss(readers, outputs, held, token)
        if not self.spare or not self.recipe.spare:
            return loss
        unwanted = sum((written[name] ** 2).mean(axis=-1) for name in self.spare) / len(self.spare)
        return loss + hinted * self.recipe.spare * (unwanted * token).sum() / token.sum()

    @cached_property
    def spare(self) -> tuple[str, ...]:
        """The heads and MLPs that the teacher does not have."""
        nodes = self.network.sites.nodes
        return tuple(site.writer for site, wired in zip(nodes, self.wired[: len(nodes)], strict=True) if not wired)

    @partial(jax.jit, static_argnums=(0, 7))
    def _round(self, state: Any, lessons: Any, shares: Any, wrong: Any, keys: Any, done: Any, size: int) -> Any:
        update, recipe = self.optimiser, self.recipe

        def one(state: Any, shares: Any, wrong: Any, key: Any) -> Any:
            def step(carry: Any, drawn: Any) -> Any:
                weights, averaged, readers, state = carry
                rows, number = drawn
                lesson, held = jax.tree.map(lambda array: array[rows], lessons)
                hinted = recipe.hint * jnp.maximum(0.0, 1 - number / (recipe.hinted * recipe.steps))
                loss, slope = jax.value_and_grad(self._loss)((weights, readers), lesson, held, hinted)
                change, state = update.update(slope, state, (weights, readers))
                weights, readers = optax.apply_updates((weights, readers), change)
                part = jnp.minimum(recipe.averaged, (1 + number) / (10 + number))  # the first weights are forgotten
                averaged = jax.tree.map(lambda old, new: part * old + (1 - part) * new, averaged, weights)
                return (weights, averaged, readers, state), loss

            numbers = done + jnp.arange(size)
            keys = jax.vmap(partial(jax.random.fold_in, key))(numbers)
            # for all steps: small kernels cost most on a GPU
            drawn = jax.vmap(partial(self._rows, shares, wrong))(keys)
            state, losses = jax.lax.scan(step, state, (drawn, numbers))
            return state, losses.mean()

        return jax.vmap(one)(state, shares, wrong, keys)
