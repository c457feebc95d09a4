"""The program's answers with a variable replaced by its values on another input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.domains import Finite
from tracr.ir.program import Tables
from tracr.model.given import given_codes
from tracr.model.replaced_program import evaluate_replaced
from tracr.runtime.table_interpreter import Batch
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["answers_with"]

Rows = Sequence[Sequence[Value]]


def answers_with(
    model: DesignedModel, label: str, rows: Rows, inputs: Rows
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The codes [input, position] of the first output with these values of a variable, and which inputs have a result.

    As in `run(set=...)`, an input has a result if the program as written, as tabulated and as optimised give one, and
    the same. All inputs have one length.
    """
    program = model.program
    own = model.variables[label].instead or label
    forms: list[tuple[Tables, str]] = [(program, own), (model.circuit.rewriting.applied(program), own)]
    if program.written is not None:
        forms.append((program.written, label))
    batch = Batch.of(inputs, model.options.vocab)
    found: list[list[list[Value]]] = []
    defined = np.ones(len(inputs), dtype=bool)
    for form, name in forms:
        given = _given(form, name, rows)
        if given is None:
            return np.zeros(batch.codes.shape, dtype=np.intp), np.zeros(len(inputs), dtype=bool)
        evaluation = evaluate_replaced(form, batch, given)
        defined &= ~evaluation.errors
        found.append(evaluation.values(form.outputs[0][1]))
    defined &= np.array([all(one[row] == found[0][row] for one in found) for row in range(len(inputs))])
    domain = program.sops[program.outputs[0][1]].domain
    assert isinstance(domain, Finite)
    codes = [[domain.index.get(value, -1) for value in row] for row in found[0]]
    return np.array(codes, dtype=np.intp), defined


def _given(form: Tables, label: str, rows: Rows) -> dict[int, NDArray[Any]] | None:
    """The codes of the values; `None` if one is not in the domain of this form of the program."""
    node = next((node for node in form.sops.values() if node.label == label), None)
    if node is None:  # the optimised program computes it inside another s-op
        return {}
    if isinstance(node.domain, Finite) and not all(value in node.domain.index for row in rows for value in row):
        return None
    return {node.id: given_codes(node.domain, rows)}
