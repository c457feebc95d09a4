"""A bank of interventions with the teacher's answers, drawn for training or for admission.

For each site, pairs of inputs of one length and a position (or all positions) are drawn, until there are enough pairs
where the teacher's answer changes and enough where it does not, or until enough were tried. Interventions under which
the program is undefined are left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from tracr.natural.network import Patch
from tracr.natural.sites import Sites
from tracr.natural.teacher import Inputs, Lesson, Teacher

__all__ = ["AT_ONCE", "CLEAR", "MOST_AT_ONCE", "Bank", "InputPairs", "draw_bank"]

Array = NDArray[Any]
AT_ONCE = {"cpu": 4096}  # interventions drawn in one batch, by device
MOST_AT_ONCE = 32_768
CLEAR = 2.0  # tolerances: a number that moves by less has neither changed nor stayed
BARE = 0.5  # the share of short inputs without padding
EVERYWHERE = 0.5  # the share of lessons that patch all positions instead of one


@dataclass(frozen=True, eq=False)
class Bank:
    """Lessons in the order of their sites; those of a site where the answer changes come first.

    For each site, `start` is the number of its first lesson, `changing` and `staying` count the lessons of each kind,
    `tried` counts the drawn interventions, and `undefined` those of them that had no true answer.
    """

    lessons: Lesson
    start: Array
    changing: Array
    staying: Array
    tried: Array
    undefined: Array

    def __len__(self) -> int:
        return len(self.lessons.base)


def draw_bank(
    teacher: Teacher,
    inputs: Inputs,
    sites: Sites,
    *,
    each: int,
    idle: int,
    tries: int,
    seed: int,
    avoid: Bank | None = None,
) -> Bank:
    """Up to `each` lessons of each kind for every site of the teacher, from at most `tries` draws.

    Sites that the teacher does not have never change its answer; they get up to `idle` lessons. No lesson is in
    `avoid`.
    """
    at_once = AT_ONCE.get(jax.default_backend(), MOST_AT_ONCE)
    known = set() if avoid is None else set(_names(avoid.lessons))
    pairs = InputPairs(inputs, np.random.default_rng(seed))
    teach = jax.jit(teacher.teach)
    kept: list[Lesson] = []
    counts = np.zeros((4, len(sites.all)), dtype=np.int64)
    for number, site in enumerate(sites.coded.tolist()):
        most = each if teacher.wired[number] else idle
        found: tuple[list[Lesson], list[Lesson]] = [], []
        have, tried, undefined = np.zeros(2, dtype=int), 0, 0
        while tried < tries and (have < most).any() and (teacher.wired[number] or have[1] < most):
            lesson = jax.tree.map(np.asarray, teach(*pairs.draw(at_once, *site)))
            tried, undefined = tried + at_once, undefined + int((~lesson.defined).sum())
            fine = lesson.defined & ~np.array([name in known for name in _names(lesson)]) if known else lesson.defined
            for place, wanted in enumerate((lesson.change >= CLEAR, lesson.change == 0)):
                chosen = np.flatnonzero(wanted & fine)[: most - have[place]]
                have[place] += len(chosen)
                found[place].append(jax.tree.map(lambda array, chosen=chosen: array[chosen], lesson))
        kept += [*found[0], *found[1]]
        counts[:, number] = *have, tried, undefined
    lessons = jax.tree.map(lambda *arrays: np.concatenate(arrays), *kept)
    start = np.concatenate([[0], np.cumsum(counts[0] + counts[1])[:-1]])
    return Bank(lessons, start, *counts)


def _names(lesson: Lesson) -> list[bytes]:
    """A key for each intervention: the inputs, the site and the position."""
    numbers: Array = np.stack(lesson.patch, axis=1)
    rows = np.concatenate([lesson.base, lesson.source, numbers], axis=1).astype(np.int16)
    return [row.tobytes() for row in rows]


class InputPairs:
    """Draws pairs of inputs of one length, with a position."""

    def __init__(self, inputs: Inputs, rng: np.random.Generator) -> None:
        self.inputs, self.rng = inputs, rng
        self.order = np.argsort(inputs.lengths, kind="stable")
        lengths = inputs.lengths[self.order]
        self.first = np.searchsorted(lengths, inputs.lengths, side="left")
        self.last = np.searchsorted(lengths, inputs.lengths, side="right")
        longest = int(inputs.lengths.max())
        self.shares = np.where(inputs.lengths == longest, 1.0, 0.0)
        self.shares /= self.shares.sum()
        rest = 1.0 / np.bincount(inputs.lengths)[inputs.lengths]
        self.shares = 0.5 * self.shares + 0.5 * rest / rest.sum()

    def draw(self, count: int, writer: int, reader: int) -> tuple[Array, Array, Patch]:
        """Base and source inputs, and interventions on one site."""
        base = self.rng.choice(len(self.inputs), size=count, p=self.shares)
        source = self.order[self.rng.integers(self.first[base], self.last[base])]
        single = self.rng.integers(1, self.inputs.lengths[base] + 1)
        everywhere = self.rng.random(count) < EVERYWHERE
        places = np.where(everywhere, -1, single).astype(np.int32)
        bare = self.rng.random(count) < BARE
        patch = Patch(np.full(count, writer, np.int32), np.full(count, reader, np.int32), places, bare)
        return self.inputs.ids[base], self.inputs.ids[source], patch
