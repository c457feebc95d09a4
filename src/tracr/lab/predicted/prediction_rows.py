"""Rows of the track "predictions": the answers under interventions that a method predicts, scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.errors import InputError
from tracr.lab.methods import run_method
from tracr.lab.predicted.predicting import predictions
from tracr.lab.rows import SubjectRuns, made_subject

if TYPE_CHECKING:
    from tracr.lab.methods import Method

__all__ = ["PredictionRows"]

Row = dict[str, Any]


class PredictionRows:
    """A subject with questions."""

    def __init__(self, task: SubjectRuns) -> None:
        given = task.conditions
        self.subject = made_subject(task)
        seed = task.seed if given.pairs_seed is None else given.pairs_seed
        self.asked = predictions(self.subject, count=given.pairs, seed=seed)

    @property
    def known(self) -> Row:
        """The columns about the subject and the questions."""
        return {
            "model_digest": self.subject.digest,
            "admitted": self.subject.admitted,
            "questions": len(self.asked.questions),
            "mattering": sum(one.matters for one in self.asked.questions),
        }

    def scored(self, method: Method) -> Row:
        """The scores of a method, and its cost."""
        made = run_method(method, self.subject, self.asked)
        if not all(isinstance(number, int) for number in made.scores):
            raise InputError(
                "answers are given by the number of their question", hint="return {question.number: answer, ...}"
            )
        scores = self.asked.score(self.asked.answers_json(dict(made.scores)))
        kinds = {kind: one.where_it_matters for kind, one in scores.by_kind.items()}
        return {
            "where_it_matters": scores.where_it_matters,
            "overall": scores.overall,
            "set": kinds.get("set"),
            "patch": kinds.get("patch"),
            "answered": scores.answered,
            "forward_passes": made.forwards,
            "backward_passes": made.backwards,
            "seconds": made.seconds,
        }
