"""Rows of the track "replacements": the parts that a method claims for components, scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.lab.methods import run_method
from tracr.lab.replaced.claims import replacement_form
from tracr.lab.replaced.replacement_scores import replacements
from tracr.lab.rows import SubjectRuns, made_subject

if TYPE_CHECKING:
    from tracr.lab.methods import Method

__all__ = ["ReplacementRows"]

Row = dict[str, Any]


class ReplacementRows:
    """A subject with the form that methods fill in."""

    def __init__(self, task: SubjectRuns) -> None:
        self.subject, self.task = made_subject(task), task
        self.form = replacement_form(self.subject)

    @property
    def known(self) -> Row:
        """The columns about the subject."""
        return {"model_digest": self.subject.digest, "admitted": self.subject.admitted}

    def scored(self, method: Method) -> Row:
        """The scores of a method, those of every scored component, and its cost."""
        made = run_method(method, self.subject, replacement_form(self.subject))
        chosen = self.task.conditions.pairs_seed
        scores = replacements(self.subject, made.scores, seed=self.task.seed if chosen is None else chosen)
        found = scores.by_component
        return {
            "recovered": scores.recovered,
            "counts": scores.counts,
            "same": scores.same,
            "components": list(found),
            "claimed": [one.claimed or "" for one in found.values()],
            "by_component": [one.recovered for one in found.values()],
            "forward_passes": made.forwards,
            "backward_passes": made.backwards,
            "seconds": made.seconds,
        }
