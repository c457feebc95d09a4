"""Measures twins on the lessons of a bank, and on inputs without interventions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.natural.admission import Rate
from tracr.natural.network import Tree, TwinNetwork
from tracr.natural.teacher import Inputs, Lesson, Teacher

__all__ = ["Examiner", "batches"]

Array = NDArray[Any]
EXAMINED = {"cpu": 4096}  # lessons in one batch, by device
MOST_EXAMINED = 8_192  # four seeds of five layers need 3 GB


def batches(count: int, size: int) -> Iterator[Array]:
    """The numbers of rows in batches of one size, so that a function is compiled once; the last row is repeated."""
    for first in range(0, count, size):
        yield np.minimum(np.arange(first, first + size), count - 1)


@dataclass(frozen=True, eq=False)
class Examiner:
    """A twin's forward pass, and the teacher whose answers it must give. Weights have a leading axis of seeds."""

    network: TwinNetwork
    teacher: Teacher

    def agreement(self, weights: Tree, lessons: Lesson) -> tuple[Array, Array]:
        """For every seed and lesson, whether the twin answers like its teacher, and whether its answer is unchanged."""
        found = []
        for rows in batches(len(lessons.base), EXAMINED.get(jax.default_backend(), MOST_EXAMINED)):
            found.append(self._agreement(weights, jax.tree.map(lambda array, rows=rows: array[rows], lessons)))
        right, same = (np.concatenate(parts, axis=1)[:, : len(lessons.base)] for parts in zip(*found, strict=True))
        return right, same

    def accuracy(self, weights: Tree, inputs: Inputs) -> list[Rate]:
        """For every seed the rate of inputs on which it is right at every position, with and without padding."""
        found = []
        for rows in batches(len(inputs), EXAMINED.get(jax.default_backend(), MOST_EXAMINED)):
            found.append(np.asarray(self._accuracy(weights, inputs.ids[rows])))
        right = np.concatenate(found, axis=1)[:, : len(inputs)].sum(axis=1)
        return [Rate(int(hits), len(inputs)) for hits in right]

    @partial(jax.jit, static_argnums=0)
    def _agreement(self, weights: Tree, lesson: Lesson) -> Any:
        answers, token = self.teacher.answers, self.network.tokens(lesson.base)

        def one(weights: Tree) -> Any:
            before, after = self.network.intervened(weights, lesson.base, lesson.source, lesson.patch)
            mine, base = answers.read(after), answers.read(before)
            right = answers.apart(mine, lesson.after) <= 1
            same = answers.apart(mine, base) <= 1
            return (right | ~token).all(axis=1), (same | ~token).all(axis=1)

        return jax.vmap(one)(weights)

    @partial(jax.jit, static_argnums=0)
    def _accuracy(self, weights: Tree, ids: Any) -> Any:
        answers, token = self.teacher.answers, self.network.tokens(ids)
        padded = jnp.zeros(len(ids), dtype=bool)
        wanted = answers.read(self.teacher.network(self.teacher.weights, ids, padded))

        def one(weights: Tree) -> Any:
            right = [
                answers.apart(answers.read(self.network(weights, ids, bare)), wanted) <= 1 for bare in (padded, ~padded)
            ]
            return ((right[0] & right[1]) | ~token).all(axis=1)

        return jax.vmap(one)(weights)
