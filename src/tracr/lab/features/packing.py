"""Packs many sparse flags into few dimensions: a direction for each, and a vector that reads each pair of them.

Token t holds x_t = Σ v_i over its features i. A head writes the stream of the token before, turned by a rotation Q: the
feature before_i has the direction v_i Q, whatever the number of dimensions. A hit is read by one vector r_i: with
z = r_i · (x_own + x_before Q) + bias, neurons answer 0 if z <= 7/16 and 1 if z >= 9/16 (`stepping.py`). There is no
loss if this is right for every own token and every token before. z is a sum of two parts, one for each token, so that
the extremes over all pairs of tokens are sums of extremes over tokens: `worst` is exact, not a sample.

V and R are found by gradient steps (Adam) on the excess of each part's error over `SLACK`, for the sets of features
that tokens have and a few more; errors of a feature count by its importance. Sides that cannot hurt are free: where the
own flag already says "no", a lower z does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.features.flag_program import FlagProgram

__all__ = ["OFF", "ON", "Packing", "pack"]

Array = NDArray[Any]
OFF, ON = 7 / 16, 9 / 16
"""Below the first, neurons answer 0; above the second, 1."""
SLACK = 0.18  # error of one part that costs nothing; two of them stay below OFF
STEPS, LEAST, RATE = 400, 150, 0.03
MORE = 0.1  # the weight of sets that no token has


@dataclass(frozen=True, eq=False)
class Packing:
    """Directions of the features, the rotation, and vectors that read hits.

    `highest` and `lowest` have for each hit the largest z for which it must be 0, and the smallest for which it must be
    1, over all pairs of tokens.
    """

    directions: Array
    turn: Array
    reads: Array
    highest: Array
    lowest: Array

    @property
    def lossless(self) -> bool:
        """Whether all hits are right for every pair of tokens."""
        return bool((self.highest <= OFF).all() and (self.lowest >= ON).all())


def pack(program: FlagProgram, dim: int, seed: int) -> Packing:
    """Directions in `dim` dimensions, with as small errors as were found."""
    rng = np.random.default_rng([seed, dim])
    directions = _unit(rng.normal(size=(program.features, dim)))
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    relation = program.relation
    signs = np.array([[relation.own_factor, relation.before_factor]])
    reads = (directions * signs[0, 0] + (directions @ turn)[program.partner] * signs[0, 1]) / 2
    known, more = _trained_on(program.sets, rng)
    sides = _Sides(program, np.concatenate([known, more]))
    rows = np.repeat([1.0, MORE], [len(known), len(more)])
    weight = rows[:, None] * program.importance / program.importance.mean()
    moments = [[np.zeros_like(one), np.zeros_like(one)] for one in (directions, reads)]
    for step in range(STEPS):
        slopes, excess = sides.slopes(directions, turn, reads, weight)
        if step >= LEAST and not excess[: len(known)].any():
            break
        for value, slope, moment in zip((directions, reads), slopes, moments, strict=True):
            value -= RATE * (1 - step / STEPS) * _adam(moment, slope, step)
        directions = _unit(directions)
    return Packing(directions, turn, reads, *_Sides(program, program.sets).worst(directions, turn, reads))


def _trained_on(sets: NDArray[np.bool_], rng: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The different sets that tokens have; and each with a random feature more, and every feature alone.

    The latter keep features apart that no token has together: one of them may be set by an intervention.
    """
    known = np.unique(sets, axis=0)
    more = known.copy()
    more[np.arange(len(more)), rng.integers(sets.shape[1], size=len(more))] = True
    return known, np.concatenate([more, np.eye(sets.shape[1], dtype=bool)])


class _Sides:
    """Sets of features, and what each part of z shall be for them."""

    def __init__(self, program: FlagProgram, sets: NDArray[np.bool_]) -> None:
        relation = program.relation
        own, before = sets, sets[:, program.partner]
        self.codes = sets.astype(np.float64)
        self.targets = relation.own_factor * own, relation.before_factor * before
        self.needed = own == bool(relation.own), before == bool(relation.before)
        self.bias = relation.bias
        self.nothing_before = not relation.before

    def slopes(self, directions: Array, turn: Array, reads: Array, weight: Array) -> tuple[tuple[Array, Array], Array]:
        """The slopes, in directions and reads, of half the squared excess, weighted; and its size for each set."""
        own = self.codes @ directions
        before = own @ turn
        first, second = (
            self._excess(stream @ reads.T - target, needed)
            for stream, target, needed in zip((own, before), self.targets, self.needed, strict=True)
        )
        excess = (np.abs(first) + np.abs(second)).sum(axis=1)
        first, second = first * weight, second * weight
        to_stream = first @ reads + second @ reads @ turn.T
        return (self.codes.T @ to_stream, first.T @ own + second.T @ before), excess

    @staticmethod
    def _excess(error: Array, needed: NDArray[np.bool_]) -> Array:
        """How far an error is outside of what is allowed: above, and below where the flag is as the hit needs it."""
        return np.asarray(np.maximum(error - SLACK, 0) - np.where(needed, np.maximum(-error - SLACK, 0), 0))

    def worst(self, directions: Array, turn: Array, reads: Array) -> tuple[Array, Array]:
        """For each hit the largest z of pairs of tokens where it is 0, and the smallest where it is 1."""
        own = self.codes @ directions
        parts = own @ reads.T, own @ turn @ reads.T
        needed = list(self.needed)
        # the first position has no token before: all flags are 0 there, and nothing is added
        parts = parts[0], np.concatenate([parts[1], np.zeros((1, parts[1].shape[1]))])
        needed[1] = np.concatenate([needed[1], np.full((1, needed[1].shape[1]), self.nothing_before)])
        high = [
            [_extreme(part, there == side, np.max) for side in (False, True)]
            for part, there in zip(parts, needed, strict=True)
        ]
        low = [_extreme(part, there, np.min) for part, there in zip(parts, needed, strict=True)]
        highest = np.max([high[0][a] + high[1][b] for a, b in ((0, 0), (0, 1), (1, 0))], axis=0)
        return highest + self.bias, low[0] + low[1] + self.bias


def _extreme(part: Array, there: NDArray[np.bool_], of: Any) -> Array:
    """The largest or smallest number of each column, among some rows."""
    empty = -np.inf if of is np.max else np.inf
    return np.asarray(of(np.where(there, part, empty), axis=0))


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _adam(moment: list[Array], slope: Array, step: int) -> Array:
    """The direction of a step of Adam."""
    moment[0] = 0.9 * moment[0] + 0.1 * slope
    moment[1] = 0.99 * moment[1] + 0.01 * slope**2
    mean, square = moment[0] / (1 - 0.9 ** (step + 1)), moment[1] / (1 - 0.99 ** (step + 1))
    return np.asarray(mean / (np.sqrt(square) + 1e-12))
