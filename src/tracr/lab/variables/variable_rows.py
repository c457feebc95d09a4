"""Rows of the track "variables": questions to methods, and the scores of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.errors import InputError, NotAdmitted, TracrError
from tracr.lab.methods import run_method
from tracr.lab.rows import SubjectRuns, made_subject
from tracr.lab.variables.found import FoundVariable
from tracr.lab.variables.questions import CONTROL, VariableData, questions_for
from tracr.lab.variables.scoring import VariableScores, score_found

if TYPE_CHECKING:
    from tracr.lab.methods import Method
    from tracr.lab.subjects import Subject

__all__ = ["VariableRows", "columns_of"]

Row = dict[str, Any]
EACH = {
    "interchange": "interchanges",
    "decoding": "decodings",
    "right_place": "right_places",
    "overlap": "overlaps",
    "angle": "angles",
}
"""From each score to the column with that of every variable."""
RIGHT = 0.99  # the least share of inputs that a model must answer as the program does


class VariableRows:
    """A subject with questions about its variables."""

    def __init__(self, task: SubjectRuns) -> None:
        given = task.conditions
        self.subject = made_subject(task)
        _require_known(self.subject)
        seed = task.seed if given.pairs_seed is None else given.pairs_seed
        self.training, self.examination = questions_for(self.subject, given.pairs, seed)
        _require_right(self.subject, self.examination)

    @cached_property
    def known(self) -> Row:
        """The columns about the subject."""
        names = [question.name for question in self.examination.questions if question.name != CONTROL]
        return {"model_digest": self.subject.digest, "admitted": self.subject.admitted, "variables": names}

    def scored(self, method: Method) -> Row:
        """The scores of a method, what it found, and its cost."""
        made = run_method(method, self.subject, self.training)
        scores = {}
        for before, question in zip(self.training.questions, self.examination.questions, strict=True):
            found = _answer(made.scores, question.name)
            scores[question.name] = found, score_found(self.subject, found, before, question, self.examination)
        return {
            **columns_of(scores),
            "forward_passes": made.forwards,
            "backward_passes": made.backwards,
            "seconds": made.seconds,
        }


def _require_known(subject: Subject) -> None:
    if not subject.admitted:
        raise NotAdmitted(
            f"the twin of {subject.case.name} with seed {subject.seed} was not admitted: its mechanism is not known",
            hint="use another seed, or train it for longer",
        )


def _require_right(subject: Subject, data: VariableData) -> None:
    """Refuse a model that does not compute its program on the inputs of the questions."""
    question, output = data.questions[0], data.output
    kept = ~question.pairs.changes
    place = data.network.places[0]
    logits = data.network.logits_from(place, data.network.streams(question.pairs.base[kept])[place])
    right = (output.codes(logits)[:, 1:] == question.pairs.answers[kept][:, 1:]).all(axis=1)
    if kept.any() and right.mean() < RIGHT:
        raise TracrError(
            f"the {subject.realisation} model of {subject.case.name} does not compute its program",
            hint="use another seed or other dials",
        )


def _answer(given: Any, name: str) -> FoundVariable:
    found = given.get(name) if isinstance(given, Mapping) else None
    if not isinstance(found, FoundVariable):
        raise InputError(
            f"the method gave no FoundVariable for {name}",
            hint="return {question.name: FoundVariable(place, featuriser)} for each of data.questions",
        )
    return found


def columns_of(scores: Mapping[str, tuple[FoundVariable, VariableScores]]) -> Row:
    """The columns of an answer: the means over variables, and each variable's own."""
    found, control = scores[CONTROL]
    own = {name: one for name, one in scores.items() if name != CONTROL}
    each = {column: [getattr(one, score) for _, one in own.values()] for score, column in EACH.items()}
    means = {score: _mean(each[column]) for score, column in EACH.items()}
    known = means["decoding"] is not None and control.decoding is not None
    return {
        **means,
        **each,
        "control": control.interchange,
        "selectivity": means["decoding"] - control.decoding if known else None,  # type: ignore[operator]
        "places": [one.place for one, _ in own.values()],
        "control_place": found.place,
        "control_decoding": control.decoding,
    }


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of the defined values."""
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) if known else None
