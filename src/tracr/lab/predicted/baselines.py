"""Answers to compare with: those of the program, of a found circuit, and of a prediction that nothing changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.data import MethodData
from tracr.lab.methods.passes import both_passes
from tracr.lab.predicted.patch_questions import patched_answers
from tracr.lab.predicted.questions import Answer, Question
from tracr.model.designed import DesignedModel
from tracr.model.replacing import replace_variables
from tracr.model.stream import variable_values
from tracr.natural.twin_model import TwinModel

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["circuit_answers", "no_change", "program_answers"]

Answers = dict[int, Answer]


def no_change(questions: Iterable[Question]) -> Answers:
    """Every answer is that without the intervention."""
    return {one.number: one.unchanged for one in questions}


def program_answers(subject: Subject, questions: Sequence[Question]) -> Answers:
    """The program's answers: its tables with the variable replaced.

    For edges, those of the compiled model from which the subject was made; of a compiled model, they are the true ones.
    An edge that the compiled model does not have changes nothing.
    """
    found = no_change(questions)
    model = subject.case.model
    for one in questions:
        if one.kind == "set":
            values = variable_values(model, list(one.tokens))[one.variable]
            changed = [*values[: one.position], one.value, *values[one.position + 1 :]]
            replaced = replace_variables(model, {one.variable: [changed]}, [list(one.tokens)])
            (rows,) = replaced.expected.outputs().values()
            found[one.number] = tuple(rows[0])
    return found | _patched(_compiled(subject.model), questions, lambda edge: [edge])


def _compiled(model: Any) -> Any:
    """The compiled model that a model was made from."""
    if isinstance(model, TwinModel):
        return model.teacher
    return model.plain if isinstance(model, DesignedModel) else model.compiled


def circuit_answers(subject: Subject, questions: Sequence[Question], circuit: Collection[EdgeKey]) -> Answers:
    """The answers of a circuit that was found in the subject.

    Patching an edge outside of the circuit changes nothing. For an edge inside, the subject runs with this edge patched
    and with all edges outside of the circuit patched too. A circuit has no variables: setting one changes nothing.
    """
    inside = {*circuit}
    outside = [edge for edge in subject.candidates if edge not in inside]
    asked = [one for one in questions if one.edge in inside]
    return no_change(questions) | _patched(subject, asked, lambda edge: [edge, *outside])


def _patched(subject: Any, questions: Sequence[Question], edges: Any) -> Answers:
    """The answers of a model with the edges patched that stand for the edge of each question."""
    asked: dict[EdgeKey, list[Question]] = {}
    for one in questions:
        if one.kind == "patch":
            asked.setdefault(one.edge, []).append(one)
    found: Answers = {}
    for edge, together in asked.items():
        both = both_passes(subject, MethodData.of([(one.tokens, one.other) for one in together]))
        if edge in set(both.patching.candidates):
            rows = patched_answers(both, [edges(edge)])[0]
            found |= {one.number: row for one, row in zip(together, rows, strict=True)}
    return found
