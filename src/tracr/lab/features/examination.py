"""A subject examined: activations, the truth, interventions, and scores of dictionaries."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.errors import InputError
from tracr.lab.features.causal import Flips, causal_recovery, drawn_flips
from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.null_atoms import null_of
from tracr.lab.features.questions import HELD_OUT, TRAINING, feature_case_of, feature_data, feature_truth
from tracr.lab.features.references import supervised
from tracr.lab.features.scoring import FeatureScores, matches_of, read_by, score_dictionary

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
        flips: interventions, if they are known: those of another subject of the same case and seed.
        sizes: the numbers of inputs for training and for scores.
    """

    def __init__(
        self,
        subject: Subject,
        pairs: int = 16,
        seed: int = 0,
        flips: Flips | None = None,
        sizes: tuple[int, int] = (TRAINING, HELD_OUT),
    ) -> None:
        self.subject, self.seed, self.sizes = subject, seed, sizes
        self.training, self.held_out = feature_data(subject, seed, *sizes)
        self.before, self.after = (feature_truth(subject, data.inputs) for data in (self.training, self.held_out))
        self.flips = drawn_flips(subject, self.held_out, self.after, pairs, seed) if flips is None else flips

    def control(self) -> Examination:
        """The same case with orthogonal features, on the same inputs and with the same interventions."""
        case = feature_case_of(self.subject)
        plain = replace(self.subject, realisation="orthogonal", dials={}, model=case.orthogonal(self.seed))
        return Examination(plain, seed=self.seed, flips=self.flips, sizes=self.sizes)

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
        matches = matches_of(found, self.after, found.codes(read_by(found, self.held_out)))
        causal = causal_recovery(self.subject, found, matches, self.training, self.before, self.flips)
        return score_dictionary(found, self.training, self.before, self.held_out, self.after, causal)

    def null(self, atoms: int) -> FeatureScores:
        """The scores of so many random atoms."""
        return self.score(null_of(self.training, max(1, atoms), self.seed))

    @cached_property
    def ceiling(self) -> FeatureScores:
        """The scores of the supervised reference."""
        return self.score(supervised(self.subject, self.training))

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
