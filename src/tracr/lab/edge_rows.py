"""Rows of the track "edges": a subject with its truth, and the scores of a method that ranks edges."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tracr.errors import TracrError
from tracr.ground_truth.edge_keys import as_text
from tracr.ground_truth.pair_truth import PairTruth
from tracr.lab.faithfulness import faithfulness
from tracr.lab.methods import Method, MethodData, run_method
from tracr.lab.rows import SCORES, SubjectRuns, made_subject
from tracr.lab.unread_edges import unread_edges

__all__ = ["EdgeRows"]

Row = dict[str, Any]


class EdgeRows:
    """A subject with its pairs and truth."""

    def __init__(self, task: SubjectRuns) -> None:
        self.subject = made_subject(task)
        given = self.conditions = task.conditions
        pairs = self.subject.case.pairs(given.pairs, task.seed if given.pairs_seed is None else given.pairs_seed)
        self.truth: PairTruth = self.subject.minimal(pairs, given.ablation, given.granularity)
        kept = {(tuple(clean), tuple(corrupted)) for clean, corrupted in self.truth.pairs}
        self.pairs = [pair for pair in pairs if (pair.clean, pair.corrupted) in kept]

    @cached_property
    def data(self) -> tuple[MethodData, str]:
        """What methods get, and their metric: that of the case, or changed answers if it is not defined."""
        try:
            return MethodData.of(self.pairs, self.subject.case.metric(self.pairs)), "logits"
        except TracrError:
            return MethodData.of(self.pairs), "answers"

    @cached_property
    def known(self) -> Row:
        """The columns about the subject and its truth."""
        truth = self.truth
        return {
            "model_digest": self.subject.digest,
            "admitted": self.subject.admitted,
            "metric": self.data[1],
            "alone": len(truth.alone),
            "jointly": len(truth.jointly),
            "inert": len(truth.inert),
            "edges": list(map(as_text, truth.candidates())),
            "truth": [_kind(truth, key) for key in truth.candidates()],
            "unread": list(map(as_text, unread_edges(truth.truth, truth.granularity))),
        }

    def scored(self, method: Method) -> Row:
        """The scores of a method, its edges and its cost."""
        truth, granularity, (data, _) = self.truth, self.conditions.granularity, self.data
        made = run_method(method, self.subject, data)
        scores = truth.score(made.scores, granularity)
        numbers, as_set = truth.read(made.scores, granularity)
        areas = faithfulness(self.subject, data, made.scores, granularity=granularity)
        return {
            **{name: getattr(scores, name, None) for name in SCORES},
            "cpr": areas.cpr,
            "cmd": areas.cmd,
            "missed": list(map(as_text, scores.missed)),
            "extra": list(map(as_text, scores.extra)),
            "forward_passes": made.forwards,
            "backward_passes": made.backwards,
            "seconds": made.seconds,
            "as_set": as_set,
            "numbers": [numbers.get(key) for key in truth.candidates()],
        }


def _kind(truth: PairTruth, key: Any) -> str:
    kinds = {"alone": truth.alone, "jointly": truth.jointly, "undecided": truth.undecided}
    return next((kind for kind, keys in kinds.items() if key in keys), "inert")
