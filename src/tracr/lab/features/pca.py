"""Principal components: the orthogonal directions with the largest variance; at most as many as dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.lab.features.found import FoundDictionary

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData

__all__ = ["pca"]


def pca(subject: Any, data: FeatureData) -> FoundDictionary:
    """The principal components, as atoms; codes are products with them."""
    centre = data.activations.mean(axis=0)
    rows = data.activations - centre
    _, vectors = np.linalg.eigh(rows.T @ rows)
    atoms = vectors[:, ::-1].T[: data.atoms]
    return FoundDictionary(atoms, lambda x: (x - centre) @ atoms.T, centre)
