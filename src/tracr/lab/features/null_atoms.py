"""Null methods: atoms that nobody learned. Every score is shown next to that of as many random atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.lab.features.found import FoundDictionary, unit_rows
from tracr.lab.features.sparse_autoencoders import atoms_of

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData

__all__ = ["data_atoms", "null_of", "random_atoms"]


def null_of(data: FeatureData, atoms: int, seed: int) -> FoundDictionary:
    """So many random directions, drawn as the activations are spread: x Wᵀ has their covariance."""
    rng = np.random.default_rng([seed, atoms])
    rows = data.activations
    drawn = rng.normal(size=(atoms, min(len(rows), 4_096)))
    return FoundDictionary(unit_rows(drawn @ rows[: drawn.shape[1]]))


def random_atoms(subject: Any, data: FeatureData, *, width: float = 1.0, seed: int = 0) -> FoundDictionary:
    """Random directions, in the space that activations span."""
    return null_of(data, atoms_of(data, width), seed)


def data_atoms(subject: Any, data: FeatureData, *, width: float = 1.0, seed: int = 0) -> FoundDictionary:
    """Activations of random tokens, as atoms."""
    rng = np.random.default_rng(seed)
    rows = data.activations[(data.activations**2).sum(axis=1) > 0]
    return FoundDictionary(unit_rows(rows[rng.integers(len(rows), size=atoms_of(data, width))]))
