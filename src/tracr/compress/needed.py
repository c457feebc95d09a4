"""Starts in fewer dimensions than exact reads need: sub-layers get what they need from the compiled model's stream.

Exact reads ask for more than the loss does. A head needs equal scores for the keys it selects, and smaller ones for the
others, however small; a one-hot output needs the largest logit for the right value. So let every sub-layer read the
stream of the compiled model (errors of one do not reach the next) through G = W Wᵀ, and ask of W:

  - values and neurons read the same numbers: A G B = A B, as in `narrow.py`, for means of streams A under the compiled
    model's attention;
  - a score s of a key in reach (its compiled score s* is within MARGIN of the largest) has the right distance from the
    other keys in reach: s − s* is the same for all of them;
  - the other keys are at least MARGIN below: only the excess counts;
  - the right logit is at least MARGIN above the others: only the lack counts.

Unlike the loss these squares have no plateaus: no softmax saturates. Levenberg-Marquardt steps from random starts take
a fraction of a second each. No W may satisfy all, so the weights of the four kinds are drawn at random; the true loss
chooses among the starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.narrow import descend
from tracr.compress.network import Attention
from tracr.compress.readings import basis
from tracr.compress.task import Task

__all__ = ["Needs", "fitting", "needs_of", "solved"]

Array = NDArray[Any]
Term = tuple[Array, Callable[[], Array]]
MARGIN = 10.0  # exp(-MARGIN) is the share of a key that is not selected
FAR = -1e30  # the score of a key that is not there
WEIGHTS = {"values": (0.3, 10), "neurons": (0.3, 10), "outputs": (0.3, 10), "scores": (0.02, 0.1), "logits": (0.1, 0.1)}
"""The least and largest weight of each kind of equation; outputs are numbers, logits those of one-hot outputs."""
SHARPER, STEPS, LEAST_FALL = 5.0, 60, 1e-3
WORK = 3e7  # most multiplications of a curvature: they limit the inputs
FEWEST, MOST = 16, 64  # fewer inputs say little; more take time


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a head: streams [input, position, D], its matrices, the compiled model's scores (FAR: no such key)
    and attention [input, query, key]."""

    streams: Array
    W_Q: Array
    b_Q: Array
    W_K: Array
    b_K: Array
    wanted: Array
    attention: Array


@dataclass(frozen=True, eq=False)
class Logits:
    """A one-hot output: streams [n, D], its columns of the unembedding [D, v], and the right values."""

    streams: Array
    columns: Array
    right: Array


@dataclass(frozen=True, eq=False)
class Needs:
    """D; the reads that have to be exact (their kind, streams [n, D] and columns [D, m]); the scores; the logits."""

    width: int
    reads: tuple[tuple[str, Array, Array], ...]
    scores: tuple[Scores, ...]
    logits: tuple[Logits, ...]


def needs_of(task: Task) -> Needs:
    """What the sub-layers and outputs of a task need."""
    network, stream = task.network, task.embedded[task.place]
    reads: list[tuple[str, Array, Array]] = []
    scores: list[Scores] = []
    for part, target in zip(network.parts, task.targets, strict=True):
        if isinstance(part, Attention):
            for head in range(len(part.W_Q)):
                one = _scores(task, stream, part, head)
                scores.append(one)
                mean = (one.attention @ stream)[task.real]
                reads.append(("values", *_block(mean, part.W_V[head] @ part.W_O[head])))
        else:
            reads.append(("neurons", *_block(stream[task.real], basis(part.W_in.T).T)))
        stream = stream.copy()
        stream[..., part.dims] += target
    real = task.real.copy()
    real[:, 0] = False
    logits = []
    for output in task.outputs:
        columns = network.W_U[:, output.start : output.stop]
        if output.categorical:
            logits.append(Logits(stream[real], columns, output.wanted[real]))
        else:
            reads.append(("outputs", *_block(stream[real], columns)))
    return Needs(network.width, tuple(reads), tuple(scores), tuple(logits))


def _scores(task: Task, stream: Array, part: Attention, head: int) -> Scores:
    weights = part.W_Q[head], part.b_Q[head], part.W_K[head], part.b_K[head]
    query, key = stream @ weights[0] + weights[1], stream @ weights[2] + weights[3]
    wanted = query @ key.swapaxes(1, 2)
    seen = np.broadcast_to(task.real[:, None, :], wanted.shape)
    if task.network.causal:
        seen = seen & np.tril(np.ones(wanted.shape[1:], dtype=bool))
    wanted = np.where(seen, wanted, FAR)
    wanted = wanted - wanted.max(axis=-1, keepdims=True)
    shares = np.exp(wanted)
    shares = np.where(task.real[..., None], shares / shares.sum(axis=-1, keepdims=True), 0.0)
    return Scores(stream, *weights, wanted, shares)


def _block(rows: Array, columns: Array) -> tuple[Array, Array]:
    """Rows and columns with the same sum of squared errors, and fewer rows: their mean square, by a QR factor."""
    return np.linalg.qr(rows, mode="r") / len(rows) ** 0.5, columns


class Equations:
    """The squares of `needs`, each kind with its weight: half of their sum has this slope and curvature over W."""

    def __init__(self, needs: Needs, weights: dict[str, float]) -> None:
        self.needs, self.weights = needs, weights

    def cost(self, W: Array) -> float:
        """The sum of squares."""
        return float(sum((error**2).sum() for error, _ in self._terms(W)))

    def system(self, W: Array) -> tuple[Array, Array]:
        """The slope and the (Gauss-Newton) curvature."""
        slope, curvature = np.zeros(W.size), np.zeros((W.size, W.size))
        for error, slopes in self._terms(W):
            J = slopes()
            slope += J.T @ error
            curvature += J.T @ J
        return slope, curvature

    def _terms(self, W: Array) -> Iterator[Term]:
        """The errors [n] of each equation, and a function that gives their slopes [n, numbers of W]."""
        for kind, A, B in self.needs.reads:
            yield _of_reads(A, B, W, self.weights[kind])
        for one in self.needs.scores:
            yield _of_scores(one, W, self.weights["scores"] / len(one.streams) ** 0.5)
        for output in self.needs.logits:
            yield _of_logits(output, W, self.weights["logits"] / len(output.streams) ** 0.5)


def _of_reads(A: Array, B: Array, W: Array, weight: float) -> Term:
    error = weight * ((A @ W) @ (W.T @ B) - A @ B)
    return error.ravel(), lambda: weight * _outer(A[:, None], B.T[None], W).reshape(error.size, W.size)


def _of_scores(one: Scores, W: Array, weight: float) -> Term:
    x, share = one.streams, one.attention
    query, key = (x @ W) @ (W.T @ one.W_Q) + one.b_Q, (x @ W) @ (W.T @ one.W_K) + one.b_K
    score = query @ key.swapaxes(1, 2)
    near = one.wanted > -MARGIN
    shift = (share * np.where(near, score - one.wanted, 0.0)).sum(axis=-1, keepdims=True)
    excess = np.maximum(score - shift + MARGIN, 0.0)
    far = (one.wanted > FAR / 2) & ~near & share.any(axis=-1, keepdims=True) & (excess > 0)
    scale = weight * np.where(near, np.sqrt(share), far)
    kept = scale.ravel() > 0
    error = scale * np.where(near, score - one.wanted - shift, excess)

    def slopes() -> Array:
        J = _outer(x[:, :, None], (key @ one.W_Q.T)[:, None], W)
        J = J + _outer((query @ one.W_K.T)[:, :, None], x[:, None], W)
        J = J - (np.where(near, share, 0.0)[..., None, None] * J).sum(axis=2, keepdims=True)
        return np.asarray((scale[..., None, None] * J).reshape(error.size, W.size)[kept])

    return error.ravel()[kept], slopes


def _of_logits(output: Logits, W: Array, weight: float) -> Term:
    x, rows = output.streams, np.arange(len(output.streams))
    z = (x @ W) @ (W.T @ output.columns)
    lack = np.maximum(z - z[rows, output.right][:, None] + MARGIN, 0.0)
    lack[rows, output.right] = 0.0
    kept = lack.ravel() > 0

    def slopes() -> Array:
        J = _outer(x[:, None], output.columns.T[None], W)
        J = J - J[rows, output.right][:, None]
        return np.asarray(weight * J.reshape(lack.size, W.size)[kept])

    return weight * lack.ravel()[kept], slopes


def _outer(x: Array, u: Array, W: Array) -> Array:
    """The slope of x W Wᵀ u over W."""
    return np.asarray(x[..., :, None] * (u @ W)[..., None, :] + u[..., :, None] * (x @ W)[..., None, :])


def fitting(task: Task, dim: int) -> Task | None:
    """The task with as many inputs as the curvature of the equations allows, or `None` if these are too few."""
    heads = sum(len(part.W_Q) for part in task.network.parts if isinstance(part, Attention))
    rows = max(1, heads) * task.ids.shape[1] ** 2
    count = min(MOST, int(WORK / (rows * (task.network.width * dim) ** 2)))
    return task.sample(count) if count >= min(FEWEST, len(task)) else None


def solved(needs: Needs, dim: int, rng: np.random.Generator) -> Array:
    """A W [D, dim] from a random start, for random weights; scores then get SHARPER times their weight."""
    weights = {kind: float(np.exp(rng.uniform(*np.log(ends)))) for kind, ends in WEIGHTS.items()}
    W = rng.normal(scale=needs.width**-0.5, size=(needs.width, dim))
    for scores in (weights["scores"], SHARPER * weights["scores"]):
        equations = Equations(needs, weights | {"scores": scores})
        W = descend(equations.cost, equations.system, W, STEPS, LEAST_FALL)
    return W
