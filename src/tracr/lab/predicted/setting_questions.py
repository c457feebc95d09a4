"""Questions that set a variable of the program at one position.

The true answer is that of the program with this value (`model.run(set=...)` of the case's compiled model, which refuses
values for which the program has no answer or the model another one). It is the same for every realisation: a subject
with the program's mechanism has this answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.ir.ops import IndicesOp, LengthOp, TokensOp
from tracr.lab.predicted.questions import Question
from tracr.model.stream import variable_values
from tracr.nearness import same_value

if TYPE_CHECKING:
    from tracr.lab.one_case import Case
    from tracr.model.compiled import CompiledModel

__all__ = ["set_questions", "settable"]


def settable(model: CompiledModel) -> list[str]:
    """The variables that are set: computed ones with a list of values, but not the outputs themselves."""
    outputs = {number for _, number in model.program.outputs}
    return [
        node.label
        for node in model.program.sops.values()
        if node.id not in outputs
        and isinstance(node.domain, Finite)
        and len(node.domain) > 1
        and not isinstance(node.op, TokensOp | IndicesOp | LengthOp)
        and node.label in model.variables
        and model.variables[node.label].settable
    ]


def set_questions(case: Case, seed: int, draws: int) -> Iterator[Question]:
    """Random questions from a number of draws; those without a true answer are left out."""
    model, rng = case.model, np.random.default_rng([seed, 0])
    labels = settable(model)
    domains = {node.label: node.domain for node in model.program.sops.values()}
    inputs = case.inputs(4_096, seed)
    for _ in range(draws if labels else 0):
        tokens = inputs[int(rng.integers(len(inputs)))]
        label, position = labels[int(rng.integers(len(labels)))], int(rng.integers(len(tokens)))
        domain = domains[label]
        assert isinstance(domain, Finite)
        value = domain.values[int(rng.integers(len(domain)))]
        values = variable_values(model, tokens)[label]
        if same_value(values[position], value):
            continue
        changed = [*values[:position], value, *values[position + 1 :]]
        try:
            true = model.run(tokens, set={label: changed}).decoded
        except TracrError:  # no input gives such values, and the program has no answer
            continue
        yield Question(0, "set", tuple(tokens), tuple(model(tokens)), tuple(true), label, position, value)
