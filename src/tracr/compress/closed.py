"""Projections in closed form: the paper's PCA baseline, and a projection without loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.readings import ReadingPlace, basis
from tracr.compress.task import Task

__all__ = ["exact_projection", "pca_projection", "residual_streams", "unmet"]

Array = NDArray[Any]
# The columns of B are unit vectors, so directions in which P B is smaller than this are rounding errors. They must not
# be scaled to unit length: then they leave the row space of A, and reads are no longer exact.
ROUNDING = 1e-10


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


def exact_projection(readers: Sequence[ReadingPlace], outputs: bool = True) -> Array:
    """A W [D, d] with which every read is exact; without `outputs`, only the reads of sub-layers.

    Let the rows of A span the streams of all places, and let the columns of B be all vectors that read the stream. A
    compressed model reads A W Wᵀ B. There is no loss if this equals A B, and then d ≥ rank(A B). Let P be the projector
    onto the row space of A, and let the columns of W be an orthonormal basis of the columns of P B. They lie in the row
    space of A, so W Wᵀ = W Wᵀ P. Hence W Wᵀ B = W Wᵀ P B = P B and A W Wᵀ B = A P B = A B: there is no loss, and
    d = rank(P B) = rank(A B) is the smallest possible with A W Wᵀ B = A B.

    This asks more than is needed: the streams of one place need not be read exactly by the readers of another.
    `narrow.py` searches for projections with fewer dimensions.
    """
    held, reads = _held(readers, outputs), _reads(readers, outputs)
    columns, sizes, _ = np.linalg.svd(held.T @ (held @ reads), full_matrices=False)
    return _signed(columns[:, sizes > ROUNDING])


def unmet(readers: Sequence[ReadingPlace]) -> Array:
    """The projector [D, D] onto the directions that no sub-layer reads and that no stream before a sub-layer holds.

    With W as in `exact_projection` and N made of such directions, A (W + N)(W + N)ᵀ B = A W Wᵀ B: all reads of
    sub-layers stay exact.
    """
    met = basis(np.concatenate([_held(readers, False), _reads(readers, False).T]))
    return np.asarray(np.eye(met.shape[1]) - met.T @ met)


def _held(readers: Sequence[ReadingPlace], outputs: bool) -> Array:
    """A basis [r, D] of the streams at all places where they are read."""
    rows = [one.held for one in (readers if outputs else readers[:-1])]
    return basis(np.concatenate([np.zeros((0, len(readers[-1].reads))), *rows]))


def _reads(readers: Sequence[ReadingPlace], outputs: bool) -> Array:
    """All vectors [D, m] that read the stream."""
    columns = [one.reads for one in (readers if outputs else readers[:-1])]
    return np.concatenate([np.zeros((len(readers[-1].reads), 0)), *columns], axis=1)


def _signed(vectors: Array) -> Array:
    """The same directions with the largest coordinate positive, so that every machine gives the same signs."""
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]))
