"""Projections without loss in fewer dimensions than the closed form: only reads made at a place matter there.

Let A_r be the streams at the place of reader r and B_r its vectors. W loses nothing if A_r W Wᵀ B_r = A_r B_r for every
r. A feature can therefore share its direction with features that are read elsewhere. For example, if y copies x, and x
is read before y is written, then y may be written along x with the length s: y is read as s + s², and s + s² = 1 makes
this exact (s = 0.618).

These are quadratic equations for W. `search` solves them by Levenberg-Marquardt steps; a solution is checked, and
failing to find one proves nothing. `least_dim` is proved: A_r W Wᵀ B_r = A_r B_r needs d ≥ rank(A_r B_r).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.readings import ReadingPlace, basis, read_error

__all__ = ["EXACT", "LARGEST_SEARCH", "descend", "least_dim", "search"]

Array = NDArray[Any]
Block = tuple[Array, Array]
EXACT = 1e-9  # the largest error of a read, of unit vectors, that counts as rounding
LARGEST_SEARCH = 1600  # most numbers in W for a search: a step takes their cube
STARTS, STEPS, LONGEST = 4, 60, 30.0  # random starts of a search; steps of each; the longest row of W


def least_dim(readers: Sequence[ReadingPlace]) -> tuple[int, str]:
    """A number of dimensions below which some reads cannot be exact, and the place of these reads."""
    ranks = [(len(basis((one.held @ one.reads).T)), one.place) for one in readers]
    return max(ranks, key=lambda found: found[0])


def search(readers: Sequence[ReadingPlace], dim: int) -> Array | None:
    """A W [D, dim] with which every read is exact, or `None` if none was found. The same call gives the same W."""
    blocks = [(one.held, basis(one.reads.T).T) for one in readers]
    width = len(blocks[-1][1])
    for seed in range(STARTS):
        start = np.random.default_rng(seed).normal(scale=dim**-0.5, size=(width, dim))
        W = _solved(blocks, start)
        if read_error(readers, W, W) < EXACT and np.linalg.norm(W, axis=1).max() < LONGEST:
            return W
    return None


def _solved(blocks: list[Block], W: Array) -> Array:
    """W after Levenberg-Marquardt steps on the squared errors of all reads."""
    return descend(partial(_cost, blocks), partial(_system, blocks), W, STEPS)


def descend(
    cost_of: Callable[[Array], float],
    system_of: Callable[[Array], tuple[Array, Array]],
    W: Array,
    steps: int,
    least_fall: float = 1e-4,
) -> Array:
    """W after Levenberg-Marquardt steps on a sum of squares, with the slope and curvature of half of it.

    It ends when the sum is 0, or large and falling by less than `least_fall` of itself.
    """
    damping, cost = 0.1, cost_of(W)
    for _ in range(steps):
        slope, curvature = system_of(W)
        for _ in range(12):
            step = np.linalg.solve(curvature + damping * np.eye(W.size), -slope).reshape(W.shape)
            new = cost_of(W + step)
            if new < cost:
                break
            damping *= 4
        else:
            return W
        stuck = cost - new < least_fall * cost and cost > 1e-6
        W, cost, damping = W + step, new, max(damping / 5, 1e-14)
        if stuck or cost < 1e-28:
            return W
    return W


def _cost(blocks: list[Block], W: Array) -> float:
    return float(sum((_error(A, B, W) ** 2).sum() for A, B in blocks))


def _error(A: Array, B: Array, W: Array) -> Array:
    return np.asarray((A @ W) @ (W.T @ B) - A @ B)


def _system(blocks: list[Block], W: Array) -> tuple[Array, Array]:
    """The slope and the (Gauss-Newton) curvature of half the squared errors, over the numbers of W.

    A change V of W changes the error by A V (WᵀB) + (A W) VᵀB. The products of these two terms, summed over streams and
    reads, are products of small matrices.
    """
    slope = np.zeros(W.shape)
    curvature = np.zeros((*W.shape, *W.shape))
    for A, B in blocks:
        read, written, error = W.T @ B, A @ W, _error(A, B, W)
        slope += A.T @ error @ read.T + B @ error.T @ written
        curvature += np.einsum("ij,kl->ikjl", A.T @ A, read @ read.T)
        curvature += np.einsum("ij,kl->ikjl", B @ B.T, written.T @ written)
        mixed = np.einsum("il,kj->ikjl", A.T @ written, read @ B.T)
        curvature += mixed + mixed.transpose(2, 3, 0, 1)
    return slope.ravel(), curvature.reshape(W.size, W.size)
