"""Independent components (FastICA, Hyvärinen and Oja 2000): directions along which activations are least Gaussian.

There are at most as many as dimensions: features in superposition are more, so that most cannot be found.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.lab.features.found import FoundDictionary

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData

__all__ = ["ica"]


def ica(subject: Any, data: FeatureData, *, seed: int = 0) -> FoundDictionary:
    """The columns of the mixing matrix, as atoms (scikit-learn)."""
    decomposition = need("sklearn.decomposition", "lab")
    rows = data.activations
    count = min(int(np.linalg.matrix_rank(rows, tol=1e-6 * np.linalg.norm(rows))), data.atoms)
    learner = decomposition.FastICA(count, whiten="unit-variance", random_state=seed, max_iter=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", need("sklearn.exceptions", "lab").ConvergenceWarning)
        learner.fit(rows)
    return FoundDictionary(learner.mixing_.T, learner.transform, learner.mean_)
