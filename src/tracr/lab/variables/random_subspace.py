"""Null method: a random subspace at a random place, with as many dimensions as the variable has values, minus one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.lab.variables.found import FoundVariable, LinearSubspace, span_of

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData

__all__ = ["random_subspace"]


def random_subspace(subject: Any, data: VariableData, *, seed: int = 0) -> dict[str, FoundVariable]:
    """A subspace for each variable."""
    rng = np.random.default_rng(seed)
    places, width = data.network.places, data.network.width
    return {
        question.name: FoundVariable(
            places[rng.integers(len(places))],
            LinearSubspace(span_of(rng.normal(size=(min(width, question.values - 1), width)))),
        )
        for question in data.questions
    }
