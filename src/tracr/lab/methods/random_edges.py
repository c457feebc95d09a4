"""A null method: random numbers.

The score of an edge is drawn uniformly from [0, 1). A method that is not better has found nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.arguments import whole
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.passes import model_of, patching_of

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["random_edges"]


def random_edges(subject: Any, data: MethodData, *, seed: int = 0) -> dict[EdgeKey, float]:
    """A random number for every edge of a subject."""
    candidates = patching_of(model_of(subject)).candidates
    numbers = np.random.default_rng(whole("seed", seed)).random(len(candidates))
    return dict(zip(candidates, numbers.tolist(), strict=True))
