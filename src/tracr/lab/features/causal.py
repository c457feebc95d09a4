"""Causal recovery: does the model act as the program says if a found feature is set?

An intervention flips one feature at one token. The program's answer with the feature set (`set=`) is the truth; only
flips that change it are asked for. In the model, the stream at the place is moved along the atom of the feature: as far
as activations differ along it, on average, between training tokens where the feature fires and others; in the opposite
direction to clear the feature. The rest of the model runs on, and the answer must be the program's. An atom that does
nothing scores 0.

At the place "pre" answers of all tokens count. Later a head has already copied the feature, so that only the answer at
the token itself counts; at "post" only what neurons compute is still read. Answers that no input has are left out: the
model cannot say them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.features.feature_case import PLACES, FeatureCase
from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.questions import FeatureData, FeatureTruth, feature_case_of
from tracr.lab.features.scoring import Matches
from tracr.lab.methods.passes import model_of
from tracr.lab.variables.network import stream_network
from tracr.values import Value

__all__ = ["FlippedRuns", "Flips", "causal_recovery", "drawn_flips"]

Array = NDArray[Any]
MOST = 48  # features that are asked for


@dataclass(frozen=True, eq=False)
class Flips:
    """Interventions on features.

    Args:
        feature: the number of the feature that is flipped.
        inputs: the input of each intervention.
        token: the position of the token, from 0.
        on: whether the feature is set rather than cleared.
        answers: the program's answers, as codes [intervention, token].
        counted: which answers count [intervention, token].
    """

    feature: NDArray[np.intp]
    inputs: list[list[Value]]
    token: NDArray[np.intp]
    on: NDArray[np.bool_]
    answers: Array
    counted: NDArray[np.bool_]


def drawn_flips(subject: Any, data: FeatureData, truth: FeatureTruth, pairs: int, seed: int) -> Flips:
    """Up to `pairs` interventions for each of up to 48 features, on tokens where the program's answer changes.

    Half of them set the feature and half clear it, if there are enough of both. The answers are those of `set=`, which
    a test compares.
    """
    case = feature_case_of(subject)
    rng = np.random.default_rng([seed, 3])
    flags, hits = case.program.flags(data.inputs), case.program.hits
    usual = flags["hits"] @ case.program.importance
    parts = []
    values = case.model.outputs[0].domain.numbers  # type: ignore[union-attr]
    read = [number for number, name in enumerate(truth.names) if case.dials.place != "post" or _split(name)[0] == hits]
    for feature in sorted(rng.permutation(read)[:MOST].tolist()):
        flipped = _flipped(case, flags, truth.names[feature])
        said = np.isin(flipped[0], values) & np.isin(_next(flipped[1], usual), values)
        changes = np.flatnonzero(((flipped[0] != usual) & said).ravel())
        fires = truth.fires[changes, feature]
        halves = [rng.permutation(changes[fires == state])[: -(-pairs // 2)] for state in (True, False)]
        rows = np.concatenate(halves)
        parts.append((np.full(len(rows), feature), rows, ~truth.fires[rows, feature], _answers(flipped, usual, rows)))
    feature, rows, on, answers = (np.concatenate(part) for part in zip(*parts, strict=True))
    at = rows % case.length
    here = np.arange(case.length) == at[:, None]
    counted = np.ones_like(here) if case.dials.place == "pre" else here
    inputs = [data.inputs[row] for row in (rows // case.length).tolist()]
    return Flips(feature, inputs, at, on, _coded(case, answers), counted)


def _flipped(case: FeatureCase, flags: dict[str, NDArray[np.bool_]], name: str) -> tuple[Array, Array]:
    """The answers [input, token] at a token if a feature is flipped there, and at the next token."""
    program = case.program
    kind, number = _split(name)
    own, before = flags["own"].copy(), flags["before"].copy()
    if kind == program.hits:
        hits = flags["hits"].copy()
        hits[..., number] ^= True
        return hits @ program.importance, flags["hits"] @ program.importance
    (own if kind == "own" else before)[..., number] ^= True
    here = program.hits_of(own, before if kind == "before" else flags["before"]) @ program.importance
    if kind == "before" or case.dials.place != "pre":
        return here, flags["hits"] @ program.importance
    copied = flags["before"].copy()
    copied[:, 1:, number] ^= True  # what the head copies to the next token
    return here, program.hits_of(flags["own"], copied) @ program.importance


def _split(name: str) -> tuple[str, int]:
    """The kind and the number of a feature.

    >>> _split("before12")
    ('before', 12)
    """
    kind = name.rstrip("0123456789")
    return kind, int(name[len(kind) :])


def _answers(answers: tuple[Array, Array], usual: Array, rows: Array) -> Array:
    """The answers [intervention, token]: as usual, but for the token of the flip and the next one."""
    length = usual.shape[1]
    number, at = rows // length, rows % length
    found: Array = usual[number].copy()
    found[np.arange(len(rows)), at] = answers[0][number, at]
    inside = at + 1 < length
    found[inside, at[inside] + 1] = answers[1][number[inside], at[inside] + 1]
    return found


def _next(answers: Array, usual: Array) -> Array:
    """The answers at the next token; at the last token, as usual."""
    return np.concatenate([answers[:, 1:], usual[:, -1:]], axis=1)


def _coded(case: FeatureCase, answers: Array) -> Array:
    """Answers as codes of the output's values."""
    values = case.model.outputs[0].domain.numbers  # type: ignore[union-attr]
    return np.asarray(np.searchsorted(values, answers))


def causal_recovery(
    subject: Any, found: FoundDictionary, matches: Matches, training: FeatureData, truth: FeatureTruth, flips: Flips
) -> float | None:
    """The share of interventions that the model answers as the program; `None` if there are none.

    `truth` is that of the training tokens.
    """
    return FlippedRuns(subject, training, truth, flips).recovery(found, matches)


class FlippedRuns:
    """Interventions on a subject, prepared for any number of dictionaries: the streams that are moved, and by how much
    mean activations differ where a feature fires. `truth` is that of the training tokens."""

    def __init__(self, subject: Any, training: FeatureData, truth: FeatureTruth, flips: Flips) -> None:
        self._flips, self._training, self._truth, self._output = flips, training, truth, subject.outputs[0]
        case = feature_case_of(subject)
        self._place = PLACES["post"] if case.dials.place == "mlp" else case.place
        self._network = stream_network(subject)
        self._ids = model_of(subject).encode(flips.inputs)

    @cached_property
    def _streams(self) -> Array:
        return self._network.streams(self._ids)[self._place]

    @cached_property
    def _differences(self) -> dict[int, Array]:
        """For each feature that is flipped, the difference of mean activations; 0 if it always or never fires."""
        rows = self._training.activations
        found = {}
        for feature in {*self._flips.feature.tolist()}:
            fires = self._truth.fires[:, feature]
            both = fires.any() and not fires.all()
            found[feature] = rows[fires].mean(axis=0) - rows[~fires].mean(axis=0) if both else np.zeros(rows.shape[1])
        return found

    def recovery(self, found: FoundDictionary, matches: Matches) -> float | None:
        """The share of interventions that the model answers as the program; `None` if there are none."""
        flips = self._flips
        if not len(flips.feature):
            return None
        moves = {
            feature: _along(found, int(matches.atom[feature]), difference)
            for feature, difference in self._differences.items()
        }
        stream = self._streams.copy()
        move = np.array([moves[one] for one in flips.feature.tolist()])
        stream[np.arange(len(stream)), flips.token + 1] += np.where(flips.on, 1, -1)[:, None] * move
        answers = self._output.codes(self._network.logits_from(self._place, stream))[:, 1:]
        return float(((answers == flips.answers) | ~flips.counted).all(axis=1).mean())


def _along(found: FoundDictionary, atom: int, difference: Array) -> Array:
    """The part of a difference along an atom; 0 without one."""
    if atom < 0:
        return np.zeros_like(difference)
    return np.asarray(difference @ found.directions[atom] * found.directions[atom])
