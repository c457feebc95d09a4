"""Difference of means (as in Marks and Tegmark 2023): the directions between the mean streams of the values.

With μ_v the mean of the streams of tokens with the value v, the subspace is the span of μ_v - μ, μ the mean of all μ_v.
A stream is decoded as the value whose mean is nearest in it. The place is where that is right most often, on inputs
held out. Nothing is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.lab.variables.choosing import Labelled, best_decoded
from tracr.lab.variables.found import FoundVariable, LinearSubspace, nearest_mean, span_of

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData

__all__ = ["difference_of_means"]


def difference_of_means(subject: Any, data: VariableData) -> dict[str, FoundVariable]:
    """The subspace of each variable."""
    return best_decoded(data, _fit)


def _fit(place: str, labelled: Labelled) -> FoundVariable:
    there = np.unique(labelled.codes)
    means = np.array([labelled.streams[labelled.codes == value].mean(axis=0) for value in there])
    subspace = LinearSubspace(span_of(means - means.mean(axis=0)))
    nearest = nearest_mean(subspace.features(labelled.streams), labelled.codes)
    return FoundVariable(place, subspace, lambda stream: nearest(subspace.features(stream)))
