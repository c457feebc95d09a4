"""The scores of predicted answers: where the intervention matters, and overall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracr.lab.predicted.questions import KINDS, Answer, Question
from tracr.lab.sampling import changed_positions

__all__ = ["PredictionScores", "score_answers"]


@dataclass(frozen=True)
class KindScores:
    """The scores of one kind of questions: the share of right answers; `None` without such questions.

    `where_it_matters` counts only questions whose true answer is not that without the intervention.
    """

    overall: float | None
    where_it_matters: float | None
    questions: int
    mattering: int


@dataclass(frozen=True)
class PredictionScores:
    """The scores of all questions, and of each kind; an answer is right if it is right at every position."""

    overall: float | None
    where_it_matters: float | None
    questions: int
    mattering: int
    answered: int
    by_kind: Mapping[str, KindScores]

    def as_json(self) -> dict[str, Any]:
        """The scores, for JSON."""
        return {**vars(self), "by_kind": {kind: vars(one) for kind, one in self.by_kind.items()}}


def score_answers(questions: Sequence[Question], answers: Mapping[int, Answer]) -> PredictionScores:
    """Compare answers, by the number of their question, with the true ones; a missing answer is wrong."""
    by_kind = {}
    for kind in KINDS:
        asked = [one for one in questions if one.kind == kind]
        if asked:
            by_kind[kind] = _scores(asked, answers)
    whole = _scores(questions, answers)
    return PredictionScores(**vars(whole), answered=len(answers), by_kind=by_kind)


def _scores(questions: Sequence[Question], answers: Mapping[int, Answer]) -> KindScores:
    right = {one.number: one.number in answers and not _differ(one.true, answers[one.number]) for one in questions}
    mattering = [one for one in questions if one.matters]
    return KindScores(
        _mean([right[one.number] for one in questions]),
        _mean([right[one.number] for one in mattering]),
        len(questions),
        len(mattering),
    )


def _differ(true: Answer, answer: Answer) -> bool:
    return len(true) != len(answer) or bool(changed_positions(true, answer))


def _mean(right: Sequence[bool]) -> float | None:
    return sum(right) / len(right) if right else None
