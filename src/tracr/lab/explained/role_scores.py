"""`explanations`: submitted roles of the components of a subject, scored.

For a component with the true roles T and the answer A, the score is |A ∩ T| / |A ∪ T|: 1 if they are the same, and 0
without an answer. Most components have one role.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.explaining.roles import ROLES
from tracr.lab.explained.submission import read_roles
from tracr.lab.explained.true_roles import possible_roles, true_roles

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["ExplanationScores", "RoleScore", "explanations"]


@dataclass(frozen=True)
class RoleScore:
    """One role: how many components have it, how many answers name it, and how many of these are right."""

    true: int
    answered: int
    right: int

    @property
    def precision(self) -> float | None:
        """The share of right answers; `None` if nobody was said to have the role."""
        return self.right / self.answered if self.answered else None

    @property
    def recall(self) -> float | None:
        """The share of the components with this role that were found; `None` if there is none."""
        return self.right / self.true if self.true else None


@dataclass(frozen=True)
class ExplanationScores:
    """The scores of submitted roles.

    `accuracy` is the mean score of the components. `chance` is its expected value for answers that draw one of the
    roles that a head or an MLP can have, all with the same probability. `exact` is the share of components whose roles
    are all right. `by_role` has the roles that occur, `by_component` the score of every component.
    """

    accuracy: float
    chance: float
    exact: float
    answered: int
    by_role: Mapping[str, RoleScore]
    by_component: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        """The scores, for JSON."""
        roles = {
            role: {**vars(one), "precision": one.precision, "recall": one.recall} for role, one in self.by_role.items()
        }
        own = {"accuracy": self.accuracy, "chance": self.chance, "exact": self.exact, "answered": self.answered}
        return {**own, "components": len(self.by_component), "by_role": roles, "by_component": dict(self.by_component)}


def explanations(subject: Subject | str, submitted: str | Path | Mapping[str, Any]) -> ExplanationScores:
    """Score the roles that were submitted for the components of a subject.

    Args:
        subject: a subject, or the name of a case: its compiled model.
        submitted: a JSON file, or its content (`explained/submission.py` has the schema). Texts are not scored.

    >>> from tracr import lab
    >>> found = explanations("hist", {"components": {"blocks.0.attn.0": {"role": "count", "text": "equal tokens"}}})
    >>> found.accuracy, round(found.chance, 3)
    (0.5, 0.208)
    """
    if isinstance(subject, str):
        from tracr.lab.subjects import subject as make_subject

        subject = make_subject(subject)
    return score_roles(subject, read_roles(subject, submitted))


def score_roles(subject: Subject, answers: Mapping[str, Collection[str]]) -> ExplanationScores:
    """The scores of roles, by component."""
    truth = true_roles(subject)
    scores = {name: overlap(answers.get(name, ()), roles) for name, roles in truth.items()}
    count = max(1, len(truth))
    chance = 0.0
    for name, roles in truth.items():
        possible = possible_roles(subject, name)
        chance += sum(overlap((role,), roles) for role in possible) / len(possible)
    exact = sum({*answers.get(name, ())} == {*roles} for name, roles in truth.items())
    return ExplanationScores(
        sum(scores.values()) / count, chance / count, exact / count, len(answers), _by_role(truth, answers), scores
    )


def overlap(answer: Collection[str], roles: Collection[str]) -> float:
    """The size of the intersection divided by that of the union."""
    return len({*answer} & {*roles}) / len({*answer} | {*roles})


def _by_role(truth: Mapping[str, Collection[str]], answers: Mapping[str, Collection[str]]) -> dict[str, RoleScore]:
    found = {}
    for role in ROLES:
        has = {name for name, roles in truth.items() if role in roles}
        said = {name for name in truth if role in answers.get(name, ())}
        if has or said:
            found[role] = RoleScore(len(has), len(said), len(has & said))
    return found
