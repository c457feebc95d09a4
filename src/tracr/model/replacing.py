"""Computes a program with variables replaced, and refuses values for which the model would compute something else.

The weights compute the program for values that occur on some input. For other given values three programs may differ:
the original one; the tabulated one, in which equal s-ops are shared and selectors are simplified by facts that hold on
every input; and the optimised one. All three run on the given values before the model does. An intervention is refused
if one of them has no result, or if the first two differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.ir.domains import Finite
from tracr.ir.program import Program, Tables
from tracr.model.given import check_values, given_codes
from tracr.model.program_variables import APART
from tracr.model.replaced_program import evaluate_replaced, only_added_up, trouble_in, with_intervals
from tracr.nearness import nearly_equal
from tracr.runtime.table_interpreter import Batch, Evaluation
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["Replacement", "replace_variables"]

Rows = Mapping[str, list[list[Value]]]


@dataclass(frozen=True, eq=False)
class Replacement:
    """The codes (numbers, if an interval) [input, position] of the given s-ops, and the program's results with them.

    In `program`, numbers that are only added or averaged are intervals. `written` is the program before equal s-ops
    were shared and selectors simplified, if that is known, and `written_given` the codes in it.
    """

    labels: tuple[str, ...]
    program: Program
    given: dict[int, NDArray[Any]]
    expected: Evaluation
    written: Tables
    written_given: dict[int, NDArray[Any]]


def replace_variables(model: DesignedModel, rows: Rows, inputs: Sequence[Sequence[Value]]) -> Replacement:
    """Evaluate the program with the given values of variables, one row per input."""
    kept = _kept(model, rows)
    batch = Batch.of(inputs, model.options.vocab)
    written = model.program.written
    optimised = model.circuit.rewriting.applied(model.program)
    numbers = only_added_up(model.program, optimised, written or model.program)
    program = with_intervals(model.program, numbers)
    given = _given(program, {kept[label]: values for label, values in rows.items()})
    _evaluated(with_intervals(optimised, numbers), batch, given, rows)
    expected = _evaluated(program, batch, given, rows)
    if written is None:  # the original program is not known
        _check_complete(model, rows)
        return Replacement(tuple(rows), program, given, expected, program, given)
    written = with_intervals(written, numbers)
    written_given = _given(written, rows)
    _check_same(model, rows, expected, _evaluated(written, batch, written_given, rows))
    return Replacement(tuple(rows), program, given, expected, written, written_given)


def _kept(model: DesignedModel, rows: Rows) -> dict[str, str]:
    """For each variable the one to set: itself, or the one it is shared with. Refuses variables that cannot be set."""
    found: dict[str, str] = {}
    domains = {node.label: node.domain for node in model.program.sops.values()}
    for label, values in rows.items():
        if label not in model.variables:
            names = ", ".join(model.variables.settable) or "none"
            raise InputError(f"the program has no variable {label!r} that could be set", hint=f"there are {names}")
        one = model.variables[label]
        if not one.settable:
            first = model.variables[one.instead] if one.instead else one
            raise InputError(f"{label} cannot be set: {one.reason}", hint=first.hint)
        found[label] = one.instead or label
        check_values(label, domains[found[label]], values)
        for other, kept in found.items():
            if kept == found[label] and rows[other] != values:
                raise InputError(
                    f"{label} and {other} cannot have different values: they are computed once", hint=APART
                )
    return found


def _given(program: Tables, rows: Rows) -> dict[int, NDArray[Any]]:
    nodes = {node.label: node for node in program.sops.values()}
    return {nodes[label].id: given_codes(nodes[label].domain, values) for label, values in rows.items()}


def _evaluated(program: Tables, batch: Batch, given: Mapping[int, NDArray[Any]], rows: Rows) -> Evaluation:
    evaluation = evaluate_replaced(program, batch, given)
    trouble = trouble_in(evaluation, given)
    if trouble is not None:
        where = f"position {trouble.position}" + (f" of input {trouble.row}" if len(batch.codes) > 1 else "")
        raise InputError(
            f"with these values of {', '.join(rows)}, {trouble.node.label} {trouble.why} (at {where}): "
            "the model has no result",
            hint=f"set values that occur together on some input, or set {trouble.node.label} as well",
        )
    return evaluation


def _check_complete(model: DesignedModel, rows: Rows) -> None:
    """Refuse to set one of several variables that are computed once."""
    for label in rows:
        first = model.variables[label].instead or label
        others = [other for other in (first, *model.variables[first].stands_for) if other not in rows]
        if others:
            names = ", ".join(others)
            raise InputError(
                f"{label} cannot be set alone: it is computed once with {names}, which would change too",
                hint=f"set {names} to the same values, or {APART}",
            )


def _check_same(model: DesignedModel, rows: Rows, tabulated: Evaluation, written: Evaluation) -> None:
    """Refuse if the outputs differ; the error names the first s-op that differs, and the reason."""
    differing = [number for number, other in _pairs(tabulated, written) if not _same(tabulated, number, written, other)]
    outputs = {number for _, number in tabulated.program.outputs}
    if outputs.isdisjoint(differing):
        return
    _check_complete(model, rows)
    node = tabulated.program.sops[differing[0]]
    raise InputError(
        f"with these values of {', '.join(rows)}, {node.label} would differ from the program: its selector was "
        "simplified by facts that hold on every input, but not for these values",
        hint=f"set values that occur together on some input, or set {node.label} as well",
    )


def _pairs(tabulated: Evaluation, written: Evaluation) -> list[tuple[int, int]]:
    """The s-ops that both evaluations have, in order."""
    own = {node.label: node.id for node in written.program.sops.values()}
    return [(node.id, own[node.label]) for node in tabulated.program.sops.values() if node.label in own]


def _same(tabulated: Evaluation, number: int, written: Evaluation, other: int) -> bool:
    shape, valid = tabulated.batch.codes.shape, tabulated.batch.valid
    first = np.broadcast_to(tabulated.codes[number], shape)[valid]
    second = np.broadcast_to(written.codes[other], shape)[valid]
    if isinstance(tabulated.program.sops[number].domain, Finite):
        return bool((first == second).all())
    return bool((nearly_equal(first, second) | (np.isnan(first) & np.isnan(second))).all())
