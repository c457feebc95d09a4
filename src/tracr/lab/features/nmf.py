"""Non-negative matrix factorisation (Lee and Seung 1999) of the positive and the negative parts of activations.

[x⁺, x⁻] is about C H with C and H not negative; an atom is h⁺ - h⁻. Activations have signs, which NMF does not.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.sparse_autoencoders import atoms_of

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData

__all__ = ["nmf"]

ROWS = 4_096  # most activations to learn from


def nmf(
    subject: Any, data: FeatureData, *, width: float = 1.0, iterations: int = 200, seed: int = 0
) -> FoundDictionary:
    """The atoms (scikit-learn)."""
    decomposition = need("sklearn.decomposition", "lab")
    learner = decomposition.NMF(atoms_of(data, width), init="random", random_state=seed, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", need("sklearn.exceptions", "lab").ConvergenceWarning)
        learner.fit(_parts(data.activations[:ROWS]))

    def encode(activations: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", need("sklearn.exceptions", "lab").ConvergenceWarning)
            return learner.transform(_parts(activations))

    half = data.activations.shape[1]
    return FoundDictionary(learner.components_[:, :half] - learner.components_[:, half:], encode)


def _parts(rows: Any) -> Any:
    """The positive and the negative parts, side by side."""
    return np.concatenate([np.maximum(rows, 0), np.maximum(-rows, 0)], axis=1)
