"""What a method returns for a variable: a place, and a map of the residual stream there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Featuriser", "FoundVariable", "LinearSubspace", "nearest_mean", "span_of"]

Array = NDArray[Any]
SMALL = 1e-2  # singular values below this part of the largest are no directions


class Featuriser(Protocol):
    """The part of a stream that is said to hold a variable."""

    def features(self, stream: Array) -> Array:
        """The part [..., size] of streams [..., d_model]."""

    def swapped(self, base: Array, source: Array) -> Array:
        """The streams of `base` with the part of those of `source`."""


@dataclass(frozen=True, eq=False)
class LinearSubspace:
    """A subspace of the residual stream: orthonormal rows [size, d_model].

    `read` [d_model, size] has the vectors that read the coordinates; by default the basis itself, so that a swap is the
    orthogonal projection. Where variables are written along directions that are not orthogonal, it is another one.
    """

    basis: Array = field(repr=False)
    read: Array | None = field(default=None, repr=False)

    def features(self, stream: Array) -> Array:
        """The coordinates in the subspace."""
        return np.asarray(stream @ (self.basis.T if self.read is None else self.read))

    def swapped(self, base: Array, source: Array) -> Array:
        """The base plus the difference of the coordinates, along the basis."""
        return np.asarray(base + self.features(source - base) @ self.basis)


@dataclass(frozen=True, eq=False)
class FoundVariable:
    """A variable in a residual stream.

    Args:
        place: the activation that holds it.
        featuriser: the part of the stream that holds it; `None` if the method only reads (a non-linear probe).
        decoder: the number of the value for streams [..., d_model]; `None`: the value whose mean is nearest, among the
            features of training inputs.
    """

    place: str
    featuriser: Featuriser | None = field(repr=False)
    decoder: Callable[[Array], Array] | None = field(default=None, repr=False)


def span_of(rows: Array, most: int | None = None) -> Array:
    """An orthonormal basis of the span of rows, without directions in which they are small.

    >>> span_of(np.array([[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]])).round(3).tolist()
    [[1.0, 0.0, 0.0]]
    """
    _, sizes, found = np.linalg.svd(np.asarray(rows, dtype=np.float64), full_matrices=False)
    kept = found[: most or len(found)][sizes[: most or len(found)] > SMALL * max(sizes.max(initial=0.0), 1e-12)]
    return np.asarray(np.where(kept[:, :1] < 0, -kept, kept)) + 0.0  # no minus zeros


def nearest_mean(features: Array, codes: Array) -> Callable[[Array], Array]:
    """A decoder of features [..., size]: the value whose mean over `features` [example, size] is nearest.

    A value that has no example is never decoded.
    """
    there = np.unique(codes)
    means = np.array([features[codes == value].mean(axis=0) for value in there])

    def decode(given: Array) -> Array:
        return np.asarray(there[((given[..., None, :] - means) ** 2).sum(axis=-1).argmin(axis=-1)])

    return decode
