"""Rows of the track "features": a method's dictionary, scored beside the control, the null and the ceiling.

control   the same method on the model of the case in its own dimensions, where features are orthogonal
null      as many random atoms as the method's dictionary has
ceiling   `supervised`: told where features fire on the training tokens
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracr.lab.features.examination import Examination
from tracr.lab.features.scoring import FeatureScores
from tracr.lab.methods import run_method
from tracr.lab.rows import SubjectRuns, made_subject

if TYPE_CHECKING:
    from tracr.lab.methods import Method

__all__ = ["BESIDE", "FeatureRows", "columns_beside"]

Row = dict[str, Any]
BESIDE = ("f1", "cosine", "firing", "causal")
"""The scores that are given for the control, the null and the ceiling too."""


class FeatureRows:
    """A subject with the data of the track."""

    def __init__(self, task: SubjectRuns) -> None:
        seed = task.seed if task.conditions.pairs_seed is None else task.conditions.pairs_seed
        self.main = Examination(made_subject(task), task.conditions.pairs, seed)
        self.control = self.main.control()

    @property
    def known(self) -> Row:
        """The columns about the subject."""
        return self.main.about

    def scored(self, method: Method) -> Row:
        """The scores of a method, beside the control, the null and the ceiling, and its cost on the subject."""
        made = run_method(method, self.main.subject, self.main.training)
        scores = self.main.score(made.scores)
        control = self.control.score(run_method(method, self.control.subject, self.control.training).scores)
        beside = {"control": control, "null": self.main.null(len(made.scores.atoms)), "ceiling": self.main.ceiling}
        return {
            **asdict(scores),
            **columns_beside(beside),
            "forward_passes": made.forwards,
            "backward_passes": made.backwards,
            "seconds": made.seconds,
        }


def columns_beside(scores: dict[str, FeatureScores]) -> Row:
    """The columns of the control, the null and the ceiling."""
    return {f"{other}_{name}": getattr(one, name) for other, one in scores.items() for name in BESIDE}
