"""A projection without loss to a given number of dimensions, or an error that says why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.closed import exact_projection
from tracr.compress.narrow import EXACT, LARGEST_SEARCH, least_dim, search
from tracr.compress.readings import ReadingPlace, read_error, readings
from tracr.errors import TracrError
from tracr.model.designed import DesignedModel
from tracr.values import Value

__all__ = ["ExactDims", "exact_dim", "exact_dims", "lossless"]

Array = NDArray[Any]
HINT = "use method='fast' to lose as little as possible"


@dataclass(frozen=True)
class ExactDims:
    """How many dimensions a compression without loss needs.

    `bound`: no projection with exact reads has fewer (proved). `found`: the fewest for which one was found. `closed`:
    those of the closed form. If `found` is `bound`, it is the smallest number.
    """

    bound: int
    found: int
    closed: int


def exact_dim(model: DesignedModel, inputs: Sequence[Sequence[Value]] | None = None) -> int:
    """The number of dimensions of `compress(model, method="exact")`, the closed form.

    The outputs stay the same on all inputs the model takes, or on `inputs` if they are given. See `exact_dims` for
    fewer dimensions.
    """
    return max(1, int(exact_projection(readings(model, inputs)).shape[1]))


def exact_dims(model: DesignedModel, inputs: Sequence[Sequence[Value]] | None = None) -> ExactDims:
    """The fewest dimensions in which a projection without loss was found, and a proved lower bound.

    The search takes seconds for models with up to about 40 dimensions. For larger models `found` is `closed`.
    """
    readers = readings(model, inputs)
    closed = exact_projection(readers)
    bound = low = max(1, least_dim(readers)[0])
    high = most = max(1, closed.shape[1])
    while low < high:
        middle = (low + high) // 2
        if len(closed) * middle > LARGEST_SEARCH or search(readers, middle) is None:
            low = middle + 1
        else:
            high = middle
    return ExactDims(bound, high, most)


def lossless(readers: Sequence[ReadingPlace], dim: int | None = None) -> Array:
    """A W [D, dim] with which every read is exact: the closed form if it fits, otherwise one that a search finds.

    Without `dim` the closed form has as many columns as it needs, but at least one.
    """
    W = exact_projection(readers)
    closed = W.shape[1]
    if dim is not None and dim < closed:
        W = _narrower(readers, dim, closed)
    if read_error(readers, W, W) > EXACT:
        raise TracrError("rounding errors are too large for a projection without loss", hint=HINT)
    return np.pad(W, [(0, 0), (0, max(0, (dim or 1) - closed))])


def _narrower(readers: Sequence[ReadingPlace], dim: int, closed: int) -> Array:
    least, place = least_dim(readers)
    if dim < least:
        raise TracrError(
            f"no projection to {dim} dimensions is without loss: the reads of {place} alone need {least}", hint=HINT
        )
    width = len(readers[-1].reads)
    if width * dim > LARGEST_SEARCH:
        raise TracrError(
            f"the model is too large to search for a projection to {dim} dimensions without loss; the closed form has "
            f"{closed}",
            hint=f"use {closed} dimensions, or method='fast'",
        )
    found = search(readers, dim)
    if found is None:
        raise TracrError(
            f"no projection to {dim} dimensions without loss was found; the closed form has {closed}, and fewer than "
            f"{least} are impossible",
            hint="exact_dims(model) finds the fewest; " + HINT,
        )
    return found
