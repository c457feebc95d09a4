"""Scores of what a method found: decoding, interchange, place and subspace (docs/lab-scores.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.variables import Variable
from tracr.errors import InputError
from tracr.lab.methods.passes import model_of
from tracr.lab.variables.found import FoundVariable, LinearSubspace, nearest_mean, span_of
from tracr.lab.variables.network import StreamNetwork
from tracr.lab.variables.questions import VariableData, VariableQuestion, known_design
from tracr.model.interventions import locations
from tracr.model.residual import time_of
from tracr.natural.twin_model import TwinModel
from tracr.runtime.outputs import Output

if TYPE_CHECKING:
    from tracr.ir.layout import Direction

__all__ = [
    "VariableScores",
    "code_differences",
    "interchange_accuracy",
    "principal_angles",
    "score_found",
    "true_subspace",
]

Array = NDArray[Any]


@dataclass(frozen=True)
class VariableScores:
    """The scores of one variable; `None` where a score is undefined.

    Args:
        decoding: the share of tokens whose value is decoded.
        interchange: the mean of the shares of right answers, over interchanges that change the answer and over others.
        right_place: whether the stream holds the variable at the place.
        overlap: the sum of the squared cosines of the principal angles to the true subspace, by the larger size.
        angle: the largest principal angle, in degrees.
    """

    decoding: float | None
    interchange: float | None
    right_place: bool | None = None
    overlap: float | None = None
    angle: float | None = None


def score_found(
    subject: Any, found: FoundVariable, training: VariableQuestion, question: VariableQuestion, data: VariableData
) -> VariableScores:
    """The scores of a variable that was found with a training question, on another question about it."""
    if found.place not in data.network.places:
        raise InputError(
            f"{found.place!r} is no place of the model", hint=f"places are {', '.join(data.network.places)}"
        )
    decoding = _decoding(found, training, question, data.network)
    interchange = interchange_accuracy(found, question, data.network, data.output)
    return VariableScores(decoding, interchange, *_where(subject, found, question))


def _decoding(
    found: FoundVariable, training: VariableQuestion, question: VariableQuestion, network: StreamNetwork
) -> float | None:
    stream, wanted = network.streams(question.ids)[found.place][:, 1:], question.codes[:, 1:]
    if found.decoder is not None:
        return float((found.decoder(stream) == wanted).mean())
    if found.featuriser is None:
        return None
    before = found.featuriser.features(network.streams(training.ids)[found.place][:, 1:])
    if not before.shape[-1]:
        return None
    nearest = nearest_mean(before.reshape(-1, before.shape[-1]), training.codes[:, 1:].ravel())
    return float((nearest(found.featuriser.features(stream)) == wanted).mean())


def interchange_accuracy(
    found: FoundVariable, question: VariableQuestion, network: StreamNetwork, output: Output
) -> float | None:
    """The share of interchanges that the model answers as the program, at all tokens.

    It is the mean of two shares: of interchanges that change the answer, and of others. A map that does nothing has
    1/2.
    """
    if found.featuriser is None or not question.pairs.changes.any():
        return None
    pairs = question.pairs
    base, source = (network.streams(ids)[found.place] for ids in (pairs.base, pairs.source))
    stream = np.where(pairs.swapped[..., None], found.featuriser.swapped(base, source), base)
    answers = output.codes(network.logits_from(found.place, stream))
    right = (answers[:, 1:] == pairs.answers[:, 1:]).all(axis=1)
    shares = [right[kind].mean() for kind in (pairs.changes, ~pairs.changes) if kind.any()]
    return float(np.mean(shares))


def _where(
    subject: Any, found: FoundVariable, question: VariableQuestion
) -> tuple[bool | None, float | None, float | None]:
    """Whether the place is right, and the overlap and the largest angle of the subspaces there."""
    model, label = model_of(subject), question.name
    if isinstance(model, TwinModel) or label not in locations(known_design(model).program, known_design(model).layout):
        return None, None, None
    true = true_subspace(model, question, found.place)
    if true is None:
        return False, None, None
    if not isinstance(found.featuriser, LinearSubspace) or not len(found.featuriser.basis):
        return True, None, None
    cosines = np.cos(np.deg2rad(principal_angles(found.featuriser.basis, true)))
    overlap = float((cosines**2).sum() / max(len(true), len(found.featuriser.basis)))
    return True, overlap, float(principal_angles(found.featuriser.basis, true).max())


def principal_angles(first: Array, second: Array) -> Array:
    """The principal angles between two subspaces, in degrees, ascending; rows are orthonormal.

    >>> principal_angles(np.eye(3)[:2], np.array([[1.0, 0, 0], [0, 0, 1]])).round(6).tolist()
    [0.0, 90.0]
    """
    cosines = np.linalg.svd(first @ second.T, compute_uv=False)
    return np.asarray(np.rad2deg(np.arccos(np.clip(cosines, -1, 1))))


def true_subspace(model: Any, question: VariableQuestion, place: str) -> Array | None:
    """The span of the differences between the codes of a variable at a place; `None` if it is not there.

    Rows are orthonormal. The stream changes in this subspace if the variable changes from one of the shown values to
    another.
    """
    design, time = model.design, time_of(place)
    variable: Variable = locations(design.program, design.layout)[question.name].variable
    held = [one for one in design.layout.directions if one.variable is variable and one.held(time)]
    if not held:
        return None
    return span_of(code_differences(held, question) @ np.asarray(model.directions)[[one.slot for one in held]])


def code_differences(held: Sequence[Direction], question: VariableQuestion) -> Array:
    """The coordinates [value, direction] of the shown values in some directions of a variable, minus their mean."""
    codes = held[0].variable.codes(question.shown)[:, [one.place for one in held]]
    return np.asarray(codes - codes.mean(axis=0))
