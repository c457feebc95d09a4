"""References, no methods: they see the truth.

true-features  the true directions; codes are sparse and not negative (lasso, by FISTA: Beck and Teboulle 2009)
supervised     the ceiling: told where each feature fires on the training inputs, it finds directions by least squares
               (x is about fires A + offset), and linear reads by ridge regression. Features that always fire together,
               or never, cannot be told apart by anyone: their directions come out wrong here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.questions import feature_truth

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData, FeatureTruth

__all__ = ["supervised", "supervised_by", "true_features"]

PENALTY, STEPS = 0.05, 60  # of the lasso, for features of length 1
RIDGE = 1e-3  # of the mean variance


def true_features(subject: Any, data: FeatureData) -> FoundDictionary:
    """The true directions."""
    truth = feature_truth(subject, data.inputs)
    offset = data.activations.mean(axis=0) - truth.fires.mean(axis=0) @ truth.directions
    return FoundDictionary(truth.directions, lambda x: _lasso(x - offset, truth.directions), offset)


def _lasso(rows: Any, atoms: Any) -> Any:
    """Codes c >= 0 with |x - c A|²/2 + PENALTY Σ c small."""
    square, product = atoms @ atoms.T, rows @ atoms.T - PENALTY
    step = 1 / np.linalg.norm(square, 2)
    codes = ahead = np.zeros_like(product)
    for number in range(STEPS):
        new = np.maximum(ahead - step * (ahead @ square - product), 0)
        ahead, codes = new + number / (number + 3) * (new - codes), new
    return codes


def supervised(subject: Any, data: FeatureData) -> FoundDictionary:
    """Directions and reads, from activations and the true firing."""
    return supervised_by(feature_truth(subject, data.inputs), data)


def supervised_by(truth: FeatureTruth, data: FeatureData) -> FoundDictionary:
    """The same, for a truth that is known already."""
    fires, rows = truth.fires.astype(np.float64), data.activations
    shares, centre = fires.mean(axis=0), rows.mean(axis=0)
    codes, spread = fires - shares, rows - centre
    atoms = np.linalg.lstsq(codes, spread, rcond=1e-9)[0]
    square = spread.T @ spread
    reads = np.linalg.solve(square + RIDGE * np.trace(square) / len(square) * np.eye(len(square)), spread.T @ codes)
    return FoundDictionary(atoms, lambda x: (x - centre) @ reads + shares, centre - shares @ atoms)
