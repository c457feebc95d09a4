"""Rows of the track "explanations": the roles that a method gives to components, scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.explaining.roles import ROLES
from tracr.lab.explained.role_scores import explanations
from tracr.lab.explained.submission import explanation_form
from tracr.lab.methods import run_method
from tracr.lab.rows import SubjectRuns, made_subject

if TYPE_CHECKING:
    from tracr.lab.methods import Method

__all__ = ["ExplanationRows"]

Row = dict[str, Any]
PARTS = ("true", "answered", "right")  # of the counts of a role


class ExplanationRows:
    """A subject with the form that methods fill in."""

    def __init__(self, task: SubjectRuns) -> None:
        self.subject = made_subject(task)
        self.form = explanation_form(self.subject)

    @property
    def known(self) -> Row:
        """The columns about the subject."""
        names = list(self.form["components"])
        return {"model_digest": self.subject.digest, "admitted": self.subject.admitted, "components": names}

    def scored(self, method: Method) -> Row:
        """The scores of a method, those of every role and component, and its cost."""
        made = run_method(method, self.subject, explanation_form(self.subject))
        scores = explanations(self.subject, made.scores)
        roles = [role for role in ROLES if role in scores.by_role]
        return {
            "accuracy": scores.accuracy,
            "exact": scores.exact,
            "chance": scores.chance,
            "above_chance": scores.accuracy - scores.chance,
            "answered": scores.answered,
            "by_component": [scores.by_component[name] for name in self.form["components"]],
            "roles": roles,
            **{f"role_{part}": [getattr(scores.by_role[role], part) for role in roles] for part in PARTS},
            "forward_passes": made.forwards,
            "backward_passes": made.backwards,
            "seconds": made.seconds,
        }
