"""The methods of the track "predictions": functions `(subject, asked) -> {number: answer}`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from tracr.lab.methods.data import MethodData
from tracr.lab.methods.registry import Method, method_named
from tracr.lab.predicted.baselines import Answers
from tracr.lab.predicted.predicting import Predictions
from tracr.lab.track import PREDICTIONS

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["PREDICTION_METHODS"]

PAIRS = 32  # of inputs, for finding a circuit


def predicted_by_circuit(
    subject: Subject, asked: Predictions, *, method: str = "exact", least: float = 0.0, seed: int = 0
) -> Answers:
    """What a circuit says that a method for edges found: the edges that score more than `least` of the largest score.

    Args:
        subject: the subject.
        asked: the questions.
        method: a method of the track "edges", with its default settings.
        least: a share of the largest absolute score.
        seed: the seed of the pairs on which the circuit is searched; they are not those of the questions.
    """
    one = method_named(method)
    pairs = subject.case.pairs(PAIRS, seed + 1_000_000)
    scores = {edge: abs(float(score)) for edge, score in one.run(subject, MethodData.of(pairs), **one.settings).items()}
    border = least * max(scores.values(), default=0.0)
    return asked.baseline("circuit", [edge for edge, score in scores.items() if score > border])


def predicted_by_program(subject: Subject, asked: Predictions) -> Answers:
    """What the program says, or the compiled model for patched edges."""
    return asked.baseline("program")


def predicted_unchanged(subject: Subject, asked: Predictions) -> Answers:
    """A null: no intervention changes an answer."""
    return asked.baseline("no_change")


_ALL = (
    Method("circuit", 1, predicted_by_circuit, {"method": "exact", "least": 0.0, "seed": 0}),
    Method("no-change", 1, predicted_unchanged),
    Method("program", 1, predicted_by_program),
)
PREDICTION_METHODS: Mapping[str, Method] = MappingProxyType(
    {one.name: Method(one.name, one.version, one.run, one.settings, one.needs, PREDICTIONS.name) for one in _ALL}
)
"""All methods; the last but one is a null method, the last reads the truth."""
