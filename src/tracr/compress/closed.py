"""Projections in closed form: the paper's PCA baseline, and the smallest projection without loss."""

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
    """The residual stream at the real positions of all inputs, before each sub-layer and at the end."""
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

    The covariance is uncentred, because W has no bias that could hold the mean.
    """
    streams = np.concatenate(residual_streams(task))
    _, vectors = np.linalg.eigh(streams.T @ streams)
    return np.asarray(_signed(vectors[:, ::-1][:, :dim]))


def exact_projection(task: Task, outputs: bool = True) -> Array:
    """The smallest W [D, d] without loss: every read is exact; without `outputs`, only the reads of sub-layers.

    Let the rows of A span the residual streams of all inputs, and let the columns of B be all vectors that read the
    stream. A compressed model reads A W Wᵀ B. There is no loss if this equals A B, and then d ≥ rank(A B). Let P be the
    projector onto the row space of A, and let the columns of W be an orthonormal basis of the columns of P B. They lie
    in the row space of A, so W Wᵀ = W Wᵀ P. Hence W Wᵀ B = W Wᵀ P B = P B and A W Wᵀ B = A P B = A B: there is no loss,
    and d = rank(P B) = rank(A B) is the smallest possible.
    """
    held, reads = _held(task, outputs), _reads(task, outputs)
    return _basis(held @ (held.T @ reads))


def unmet(task: Task) -> Array:
    """The projector [D, D] onto the directions that no sub-layer reads and that no stream before a sub-layer holds.

    With W as in `exact_projection` and N made of such directions, A (W + N)(W + N)ᵀ B = A W Wᵀ B: all reads of
    sub-layers stay exact.
    """
    met = _basis(np.concatenate([_held(task, False), _reads(task, False)], axis=1))
    return np.asarray(np.eye(task.network.width) - met @ met.T)


def _held(task: Task, outputs: bool) -> Array:
    """A basis [D, r] of the residual streams at all places where they are read."""
    streams = residual_streams(task)
    return _basis(np.concatenate([np.zeros((0, task.network.width)), *(streams if outputs else streams[:-1])]).T)


def _reads(task: Task, outputs: bool) -> Array:
    """All columns that read the residual stream, each of length 1."""
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
    """The same directions with the largest coordinate positive, so that every machine gives the same signs."""
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]))
