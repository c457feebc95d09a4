"""Tries every place of a model and keeps the best; the earliest of equally good ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.variables.found import FoundVariable
from tracr.lab.variables.questions import VariableData, VariableQuestion

__all__ = ["Labelled", "best_decoded", "earliest_best"]

Array = NDArray[Any]
EQUAL = 0.005  # scores that differ by less are equally good
HELD_OUT = 4  # every fourth input chooses the place


@dataclass(frozen=True, eq=False)
class Labelled:
    """Streams of tokens [token, d_model] with the number of the variable's value, for training and for choosing."""

    streams: Array
    codes: Array
    held_out: Array
    held_out_codes: Array
    values: int


def earliest_best(scores: dict[str, float]) -> str:
    """The earliest place with the best score."""
    best = max(scores.values())
    return next(place for place, score in scores.items() if score >= best - EQUAL)


def best_decoded(data: VariableData, fit: Callable[[str, Labelled], FoundVariable]) -> dict[str, FoundVariable]:
    """For each question what `fit` finds at the place where its decoder is right most often, on inputs held out."""
    found = {}
    for question in data.questions:
        streams = data.network.streams(question.ids)
        made, scores = {}, {}
        for place in data.network.places:
            labelled = _labelled(question, streams[place])
            made[place] = fit(place, labelled)
            decoder = made[place].decoder
            assert decoder is not None
            scores[place] = float((decoder(labelled.held_out) == labelled.held_out_codes).mean())
        found[question.name] = made[earliest_best(scores)]
    return found


def _labelled(question: VariableQuestion, stream: Array) -> Labelled:
    out = np.arange(len(stream)) % HELD_OUT == HELD_OUT - 1
    width = stream.shape[-1]
    parts = [
        part
        for rows in (~out, out)
        for part in (stream[rows, 1:].reshape(-1, width), question.codes[rows, 1:].reshape(-1))
    ]
    return Labelled(parts[0], parts[1], parts[2], parts[3], question.values)
