"""Scores of a dictionary against the true features (docs/lab-features.md).

Atoms that never fire on the held-out tokens do not count. Features and the other atoms are matched one to one
(`matching.py`) by the cosine of their directions, without its sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.features.found import FoundDictionary, unit_rows
from tracr.lab.features.matching import matched
from tracr.lab.features.questions import FeatureData, FeatureTruth

__all__ = [
    "RECOVERED",
    "FeatureScores",
    "Matches",
    "best_threshold",
    "firings",
    "matches_of",
    "read_by",
    "score_dictionary",
]

Array = NDArray[Any]
RECOVERED = 0.9
"""The least cosine of a feature that was recovered."""
SPLIT = 0.7  # the least cosine of an atom that counts as a part of a feature
ABSORBED = 0.5  # the least share of a feature's length that another atom contributes in its place
CHOSEN_ON = 4_096  # training tokens on which thresholds are chosen
SILENT = 1e-6  # a code below this, times the largest, is 0


@dataclass(frozen=True)
class FeatureScores:
    """The scores of a dictionary; `None` where a score is undefined.

    Args:
        f1: the harmonic mean of precision and recall.
        cosine: the mean over features of the cosine of their atom; 0 for features without one.
        precision: the share of atoms whose feature was recovered (a cosine of 0.9 or more).
        recall: the share of features that were recovered.
        firing: the mean over features of the F1 score of their atom's firing.
        absorption: the share of the firings of recovered features on which their atom is silent, and another
            contributes at least half of the feature.
        splitting: the mean number of atoms to which a feature is the nearest, with a cosine of 0.7 or more, of features
            that have any; 1 is best.
        causal: the share of interventions along atoms that the model answers as the program does.
        variance: the share of the variance that the dictionary reconstructs.
        atoms: the number of atoms that fire.
    """

    f1: float
    cosine: float
    precision: float
    recall: float
    firing: float | None
    absorption: float | None
    splitting: float | None
    causal: float | None
    variance: float
    atoms: int


@dataclass(frozen=True, eq=False)
class Matches:
    """Which atom each feature has.

    Args:
        atom: the number of its atom, or -1.
        cosine: the cosine, without its sign; 0 without an atom.
        sign: +1 or -1, so that the atom times it points along the feature.
        alive: which atoms fire.
        cosines: of all features and atoms, with signs.
    """

    atom: NDArray[np.intp]
    cosine: Array
    sign: Array
    alive: NDArray[np.bool_]
    cosines: Array


def matches_of(found: FoundDictionary, truth: FeatureTruth, codes: Array) -> Matches:
    """The best one-to-one matching, of atoms that fire on the tokens of `codes`."""
    size = np.abs(codes)
    alive = (size > SILENT * size.max(initial=0.0)).any(axis=0) & found.directions.any(axis=1)
    cosines = unit_rows(truth.directions) @ found.directions.T
    numbers = np.flatnonzero(alive)
    chosen = matched(np.abs(cosines[:, numbers]))
    atom = np.where(chosen >= 0, numbers[np.maximum(chosen, 0)] if len(numbers) else -1, -1)
    own = np.where(atom >= 0, cosines[np.arange(len(atom)), np.maximum(atom, 0)], 0.0)
    return Matches(atom, np.abs(own), np.where(own < 0, -1.0, 1.0), alive, cosines)


def score_dictionary(
    found: FoundDictionary,
    training: FeatureData,
    truth: FeatureTruth,
    examination: FeatureData,
    examined: FeatureTruth,
    causal: Callable[[Matches], float | None] = lambda matches: None,
) -> FeatureScores:
    """The scores on held-out tokens; thresholds are chosen on training tokens. `causal` measures the score `causal` of
    the atoms that features have."""
    before = found.codes(read_by(found, training)[:CHOSEN_ON])
    codes = found.codes(read_by(found, examination))
    matches = matches_of(found, examined, codes)
    recovered, atoms = int((matches.cosine >= RECOVERED).sum()), int(matches.alive.sum())
    features = len(examined.names)
    fires = firings(matches, before, truth, codes)
    error = examination.activations - found.decoded(codes)
    spread = examination.activations - examination.activations.mean(axis=0)
    return FeatureScores(
        2 * recovered / max(1, features + atoms),
        float(matches.cosine.mean()),
        recovered / max(1, atoms),
        recovered / features,
        _mean_f1(fires, examined.fires),
        _absorption(found, matches, codes, fires, examined),
        _splitting(matches),
        causal(matches),
        float(1 - (error**2).sum() / max((spread**2).sum(), 1e-12)),
        atoms,
    )


def read_by(found: FoundDictionary, data: FeatureData) -> Array:
    """The activations that a dictionary's codes are computed from."""
    return data.inputs_of_mlp if found.reads_inputs and data.inputs_of_mlp is not None else data.activations


def firings(matches: Matches, before: Array, truth: FeatureTruth, codes: Array) -> NDArray[np.bool_]:
    """Whether each feature's atom fires on each token of `codes`; thresholds are the best on the tokens of `before`."""
    features = np.flatnonzero(matches.atom >= 0)
    atoms, sign = matches.atom[features], matches.sign[features]
    chosen_on, true = (np.ascontiguousarray(one.T) for one in (sign * before[:, atoms], truth.fires[: len(before)]))
    thresholds = [best_threshold(one, true[feature]) for one, feature in zip(chosen_on, features, strict=True)]
    fires = np.zeros((len(codes), len(matches.atom)), dtype=bool)
    fires[:, features] = sign * codes[:, atoms] > np.array(thresholds)
    return fires


def best_threshold(codes: Array, fires: NDArray[np.bool_]) -> float:
    """The threshold above which codes agree best with the firing of a feature, by F1; between two codes.

    >>> best_threshold(np.array([0.0, 0.2, 0.9, 1.0]), np.array([False, False, True, True]))
    0.55
    """
    active = np.flatnonzero(codes)  # most codes are 0: they are one entry, so that few numbers are sorted
    silent = len(codes) - len(active)
    values = np.append(codes[active], [0.0] * bool(silent))
    sizes = np.append(np.ones(len(active), dtype=np.int64), [silent] * bool(silent))
    true = np.append(fires[active], [fires.sum() - fires[active].sum()] * bool(silent))
    order = np.argsort(-values, kind="stable")
    ranked, hits = values[order], np.cumsum(true[order])
    f1 = 2 * hits / (np.cumsum(sizes[order]) + max(1, int(fires.sum())))
    last = np.append(ranked[1:] < ranked[:-1], True)  # equal codes are above a threshold together, or not at all
    best = int(np.where(last, f1, -1.0).argmax())
    return float((ranked[best] + ranked[best + 1]) / 2) if best + 1 < len(ranked) else float(ranked[best] - 1)


def _mean_f1(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float | None:
    """The mean of the F1 scores of features that fire."""
    there = true.any(axis=0)
    if not there.any():
        return None
    both = (found & true).sum(axis=0)
    return float((2 * both / np.maximum(1, found.sum(axis=0) + true.sum(axis=0)))[there].mean())


def _absorption(
    found: FoundDictionary, matches: Matches, codes: Array, fires: NDArray[np.bool_], truth: FeatureTruth
) -> float | None:
    features = np.flatnonzero(matches.cosine >= RECOVERED)
    length = np.linalg.norm(truth.directions, axis=1)
    absorbed = total = 0
    for feature in features.tolist():
        firing = np.flatnonzero(truth.fires[:, feature])
        total += len(firing)
        missed = firing[~fires[firing, feature]]
        along = matches.cosines[feature] * np.linalg.norm(found.atoms, axis=1) / length[feature]
        others = np.delete(codes[missed] * along, matches.atom[feature], axis=1)
        absorbed += int((others.max(axis=1, initial=0.0) >= ABSORBED).sum())
    return absorbed / total if total else None


def _splitting(matches: Matches) -> float | None:
    size = np.abs(matches.cosines[:, matches.alive])
    if not size.shape[1]:
        return None
    parts = np.bincount(size.argmax(axis=0)[size.max(axis=0) >= SPLIT], minlength=len(size))
    return float(parts[parts > 0].mean()) if parts.any() else None
