"""Reference, no method: the variable's own directions, at the first place where the labels have it.

The coordinates c of the variable are read with the model's read directions R and written along its directions W: a swap
is base + (source - base) R W. The control is not a variable of the model: for it the reference has nothing, and changes
nothing. Twins have no labels and are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.errors import TracrError
from tracr.lab.methods.passes import model_of
from tracr.lab.variables.found import FoundVariable, LinearSubspace, span_of
from tracr.lab.variables.scoring import code_differences
from tracr.model.interventions import locations
from tracr.model.residual import time_of
from tracr.natural.twin_model import TwinModel

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData, VariableQuestion

__all__ = ["true_subspace_of"]


def true_subspace_of(subject: Any, data: VariableData) -> dict[str, FoundVariable]:
    """The true subspace of each variable."""
    model = model_of(subject)
    if isinstance(model, TwinModel):
        raise TracrError("the directions of a twin's variables are not known", hint="use another method")
    return {question.name: _found(model, question, data.network.places) for question in data.questions}


def _found(model: Any, question: VariableQuestion, places: tuple[str, ...]) -> FoundVariable:
    here = locations(model.design.program, model.design.layout).get(question.name)
    variable = None if here is None else here.variable
    for place in places:
        held = [one for one in model.design.layout.directions if one.variable is variable and one.held(time_of(place))]
        if held:
            slots = [one.slot for one in held]
            differences = span_of(code_differences(held, question))
            read = np.asarray(model.read_directions)[:, slots] @ differences.T
            left, sizes, basis = np.linalg.svd(differences @ np.asarray(model.directions)[slots], full_matrices=False)
            return FoundVariable(place, LinearSubspace(basis, read @ left * sizes))
    return FoundVariable(places[0], LinearSubspace(np.zeros((0, model.d_model))))
