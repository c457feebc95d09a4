"""Projections in closed form: the paper's PCA baseline, and the smallest one that loses nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.network import Attention
from tracr.compress.task import Task

__all__ = ["exact_projection", "pca_projection", "residual_streams", "unmet"]

Array = NDArray[Any]
RELATIVE = 1e-9  # singular values below this, times the largest, are zero


def residual_streams(task: Task) -> list[Array]:
    """What the residual stream holds at the real positions of all inputs where each part reads it, and at the end."""
    network = task.network
    stream = task.embedded[task.place]
    found = []
    for part, target in zip(network.parts, task.targets, strict=True):
        found.append(stream[task.real])
        stream = stream.copy()
        stream[..., part.dims] += target
    return [*found, stream[task.real]]


def pca_projection(task: Task, dim: int) -> Array:
    """The first principal directions of the residual stream over inputs, positions and sub-layers [D, d].

    They are those of the uncentred covariance: W has no bias that could hold the mean.
    """
    streams = np.concatenate(residual_streams(task))
    _, vectors = np.linalg.eigh(streams.T @ streams)
    return np.asarray(_signed(vectors[:, ::-1][:, :dim]))


def exact_projection(task: Task, outputs: bool = True) -> Array:
    """The smallest W [D, d] with which everything that is read is read exactly; by sub-layers alone, if so asked.

    Let the rows of A span what the residual stream holds on any input and the columns of B be everything it is read
    with. A compressed model reads A W Wᵀ B, so it loses nothing if that is A B, and then d ≥ rank(A B). With P the
    projector onto the row space of A, let the columns of W be an orthonormal basis of the columns of P B. Those lie in
    the row space of A, so W Wᵀ = W Wᵀ P, hence W Wᵀ B = W Wᵀ P B = P B and A W Wᵀ B = A P B = A B: nothing is lost, and
    d = rank(P B) = rank(A B) is the least there is.
    """
    held, reads = _held(task, outputs), _reads(task, outputs)
    return _basis(held @ (held.T @ reads))


def unmet(task: Task) -> Array:
    """The projector [D, D] onto the directions no sub-layer meets, in what the stream holds before it or in its reads.

    With W as in `exact_projection` and N made of such directions, A (W + N)(W + N)ᵀ B = A W Wᵀ B: all sub-layers still
    read exactly.
    """
    met = _basis(np.concatenate([_held(task, False), _reads(task, False)], axis=1))
    return np.asarray(np.eye(task.network.width) - met @ met.T)


def _held(task: Task, outputs: bool) -> Array:
    """A basis [D, r] of what the residual stream holds wherever it is read."""
    streams = residual_streams(task)
    return _basis(np.concatenate([np.zeros((0, task.network.width)), *(streams if outputs else streams[:-1])]).T)


def _reads(task: Task, outputs: bool) -> Array:
    """Every column the residual stream is read with, each of length 1."""
    columns = [task.network.W_U if outputs else np.zeros((task.network.width, 0))]
    for part in task.network.parts:
        if isinstance(part, Attention):
            columns += [matrix for kind in (part.W_Q, part.W_K, part.W_V) for matrix in kind]
        else:
            columns.append(part.W_in)
    reads = np.concatenate(columns, axis=1)
    size = np.linalg.norm(reads, axis=0)
    return np.asarray(reads[:, size > 0] / size[size > 0])


def _basis(columns: Array) -> Array:
    """An orthonormal basis of the span of columns."""
    vectors, values, _ = np.linalg.svd(columns, full_matrices=False)
    return _signed(vectors[:, values > RELATIVE * values.max(initial=0.0)])


def _signed(vectors: Array) -> Array:
    """The same directions, the largest coordinate of each positive: the same on every machine."""
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]))
