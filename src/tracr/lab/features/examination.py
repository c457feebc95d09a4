"""A subject examined: activations, the truth, interventions, and scores of dictionaries."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.errors import InputError
from tracr.lab.features.causal import FlippedRuns, Flips, drawn_flips
from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.null_atoms import null_of
from tracr.lab.features.questions import (
    HELD_OUT,
    TRAINING,
    FeatureTruth,
    feature_case_of,
    feature_data,
    feature_truth,
)
from tracr.lab.features.references import supervised_by
from tracr.lab.features.scoring import FeatureScores, score_dictionary

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["Examination"]

Row = dict[str, Any]


class Examination:
    """A subject with activations for training, others for scores, the truth, and interventions.

    Args:
        subject: the subject, of a feature case.
        pairs: the number of interventions for each feature.
        seed: the seed of inputs and interventions.
        like: the examination of another subject of the same case, with the same seed and sizes: firings and
            interventions are taken from it, as they do not depend on the subject.
        sizes: the numbers of inputs for training and for scores.
    """

    def __init__(
        self,
        subject: Subject,
        pairs: int = 16,
        seed: int = 0,
        like: Examination | None = None,
        sizes: tuple[int, int] = (TRAINING, HELD_OUT),
    ) -> None:
        self.subject, self.seed, self.sizes = subject, seed, sizes
        self.training, self.held_out = feature_data(subject, seed, *sizes)
        if like is not None:
            _require_same(self, like)
        known = (None, None) if like is None else (like.before.fires, like.after.fires)
        self.before: FeatureTruth = feature_truth(subject, self.training.inputs, known[0])
        self.after: FeatureTruth = feature_truth(subject, self.held_out.inputs, known[1])
        self.flips: Flips = drawn_flips(subject, self.held_out, self.after, pairs, seed) if like is None else like.flips

    def control(self) -> Examination:
        """The same case with orthogonal features, on the same inputs and with the same interventions."""
        case = feature_case_of(self.subject)
        plain = replace(self.subject, realisation="orthogonal", dials={}, model=case.orthogonal(self.seed))
        return Examination(plain, seed=self.seed, like=self, sizes=self.sizes)

    def score(self, found: Any) -> FeatureScores:
        """The scores of a dictionary."""
        if not isinstance(found, FoundDictionary):
            raise InputError(
                f"the method gave no FoundDictionary but {type(found).__name__}",
                hint="return FoundDictionary(atoms, encode)",
            )
        width = self.training.activations.shape[1]
        if found.atoms.shape[1] != width:
            raise InputError(
                f"atoms have {found.atoms.shape[1]} dimensions, activations have {width}",
                hint="learn the dictionary on data.activations",
            )
        causal = partial(self._runs.recovery, found)
        return score_dictionary(found, self.training, self.before, self.held_out, self.after, causal)

    @cached_property
    def _runs(self) -> FlippedRuns:
        return FlippedRuns(self.subject, self.training, self.before, self.flips)

    def null(self, atoms: int) -> FeatureScores:
        """The scores of so many random atoms."""
        return self.score(null_of(self.training, max(1, atoms), self.seed))

    @cached_property
    def ceiling(self) -> FeatureScores:
        """The scores of the supervised reference."""
        return self.score(supervised_by(self.before, self.training))

    @cached_property
    def about(self) -> Row:
        """The columns about the subject."""
        model, case = self.subject.model, feature_case_of(self.subject)
        inputs = self.held_out.inputs
        answers = self.subject.outputs[0].codes(model.logits(model.encode(inputs)))[:, 1:]
        usual = case.program.flags(inputs)["hits"] @ case.program.importance
        values = self.subject.outputs[0].domain.numbers  # type: ignore[union-attr]
        return {
            "model_digest": self.subject.digest,
            "admitted": True,
            "place": self.training.place,
            "features": len(self.after.names),
            "dimensions": self.training.activations.shape[1],
            "right_answers": float((np.asarray(values)[answers] == usual).all(axis=1).mean()),
        }


def _require_same(one: Examination, other: Examination) -> None:
    """Refuse an examination whose firings and interventions are those of another case or of other inputs."""
    same = feature_case_of(one.subject) is feature_case_of(other.subject)
    if not same or (one.seed, one.sizes) != (other.seed, other.sizes):
        raise InputError(
            "`like` is an examination of another case, or with another seed or other sizes",
            hint="give one of the same case, seed and sizes, or leave `like` out",
        )
