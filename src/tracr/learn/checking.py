"""Checks a program on all inputs of a puzzle, compiles it, and runs the transformer on them too.

Every step is bounded: the number of operations of the program, the length of its strings, the sizes that the compiler
may reach, and the time, which is tested before each operation and after each pass of the compiler.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracr.arguments import text
from tracr.errors import CompileError, EvaluationError, ExpressionError, InputError, TracrError
from tracr.learn.reading import Program, read_program
from tracr.learn.verdict import Verdict, WrongAnswer, typed
from tracr.model.compiling import compile
from tracr.nearness import ANSWER, same_value
from tracr.rasp.base import RASPExpr
from tracr.rasp.elementwise import SOp
from tracr.rasp.interpreter import DefaultRASPEvaluator
from tracr.rasp.traversal import topological
from tracr.text.drawing import Drawing
from tracr.text.drawing.plan import DrawnRow, plan
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.learn.puzzle import Puzzle
    from tracr.model.compiled import CompiledModel

__all__ = ["SECONDS", "check"]

SECONDS = 20.0
MOST_PARTS = 500  # operations of a program
LONGEST_TEXT = 1_000  # characters of a value
LEVELS = (1, 2)  # at which the program is compiled; the model with fewer layers counts
LIMITS: dict[str, Any] = {
    "max_values": 20_000,
    "max_cells": 200_000,
    "max_parameters": 5_000_000,
    "max_memory": "512MB",
}


class _TimeIsUp(Exception):
    """The check takes longer than it may."""


@dataclass(frozen=True)
class _Clock:
    end: float

    def look(self, *_: object) -> None:
        """Stop the check if its time is up."""
        if time.monotonic() > self.end:
            raise _TimeIsUp


def check(puzzle: Puzzle, program: Program, name: str, seconds: float) -> Verdict:
    """The verdict on a program."""
    student = read_program(program, text("name", name), puzzle.vocab, puzzle.max_len)
    clock = _Clock(time.monotonic() + seconds)
    attempt = _Attempt(puzzle, student.sop, topological([student.sop]), clock)
    found = attempt.verdict()
    return replace(found, warnings=student.warnings)


class _Attempt:
    """A program on its way through the inputs of a puzzle."""

    def __init__(self, puzzle: Puzzle, sop: SOp, order: Sequence[RASPExpr], clock: _Clock) -> None:
        if len(order) > MOST_PARTS:
            raise ExpressionError(
                f"the program has {len(order):,} operations, and a puzzle takes at most {MOST_PARTS}",
                hint="every puzzle has a solution with fewer than 50",
            )
        self.puzzle, self.sop, self.order, self.clock = puzzle, sop, order, clock
        self.interpreter = DefaultRASPEvaluator()
        self.checked = 0
        self.inputs: list[tuple[Any, ...]] = []
        self.expected: list[list[Any]] = []

    def verdict(self) -> Verdict:
        """Run the program, then its transformer."""
        try:
            for tokens in self.puzzle.inputs():
                expected = self.puzzle.answers(tokens)
                wrong = self.wrong_on(tokens, expected)
                self.checked += 1
                if wrong is not None:
                    return wrong
                self.inputs.append(tokens)
                self.expected.append(expected)
            return self.compiled()
        except _TimeIsUp:
            return self.failed(
                f"Not finished: the time is up after {self.checked:,} inputs, all of them right.\n"
                "  hint: write the program with fewer operations"
            )

    # the program

    def wrong_on(self, tokens: tuple[Any, ...], expected: list[Any]) -> Verdict | None:
        """The verdict if the program is wrong on this input."""
        values: dict[RASPExpr, Any] = {}
        for expr in self.order:
            self.clock.look()
            try:
                values[expr] = self.interpreter.evaluate_one(expr, list(tokens), [values[x] for x in expr.children])
                _check_texts(expr, values[expr])
            except (EvaluationError, InputError) as error:
                message = f"Not yet: on {typed(tokens)} it should give {typed(expected)}, but fails.\n{error}"
                return self.failed(message, WrongAnswer(tokens, tuple(expected), None, _drawn_below(expr, tokens)))
        got = values[self.sop]
        if _same(got, expected):
            return None
        return self.failed(
            f"Not yet: on {typed(tokens)} it should give {typed(expected)}, but gives {typed(got)}.{_advice(got)}",
            WrongAnswer(tokens, tuple(expected), tuple(got), _drawn(self.sop, tokens, expected)),
        )

    # the transformer

    def compiled(self) -> Verdict:
        """The verdict on a program that is right on all inputs."""
        try:
            model = self.fewest_layers()
        except CompileError as error:
            return self.failed(
                f"Right on all {self.checked:,} inputs, but not yet a transformer: it cannot be compiled.\n{error}"
            )
        for tokens, expected, got in zip(self.inputs, self.expected, self.run(model), strict=True):
            if not _same(got, expected):
                return self.failed(
                    f"Right on all {self.checked:,} inputs, but not its transformer: on {typed(tokens)} that should "
                    f"give {typed(expected)}, but gives {typed(got)}.\n"
                    "  hint: do not distinguish numbers that differ only by rounding",
                    WrongAnswer(tokens, tuple(expected), tuple(got), _drawn(self.sop, tokens, expected)),
                )
        return self.solved(model.n_layers)

    def fewest_layers(self) -> CompiledModel:
        """The model with the fewest layers."""
        vocab, length = self.puzzle.vocab, self.puzzle.max_len
        models = [compile(self.sop, vocab, length, level=level, watch=self.clock.look, **LIMITS) for level in LEVELS]
        return min(models, key=lambda model: model.n_layers)

    def run(self, model: CompiledModel) -> list[Any]:
        """The transformer's answers on all inputs."""
        self.clock.look()
        found: list[Any] = model([list(tokens) for tokens in self.inputs])
        return found

    # verdicts

    def solved(self, layers: int) -> Verdict:
        par = self.puzzle.par
        compared = "that is par" if layers == par else f"par is {par}"
        praise = " Fewer than any solution we know!" if layers < par else ""
        message = (
            f"Solved: right on all {self.checked:,} inputs, as a program and as a transformer of {layers} "
            f"layer{'s' * (layers != 1)} ({compared}).{praise}"
        )
        return Verdict(self.puzzle.id, True, message, self.checked, layers, par, None, self.puzzle.solution)

    def failed(self, message: str, wrong: WrongAnswer | None = None) -> Verdict:
        return Verdict(self.puzzle.id, False, message, self.checked, None, self.puzzle.par, wrong, None)


def _check_texts(expr: RASPExpr, values: Sequence[Value]) -> None:
    """Refuse strings that would fill the memory."""
    if isinstance(expr, SOp) and any(isinstance(value, str) and len(value) > LONGEST_TEXT for value in values):
        raise EvaluationError(f"makes strings of more than {LONGEST_TEXT:,} characters", expression=expr)


def _same(got: Sequence[Value], expected: Sequence[Value]) -> bool:
    """Whether an answer is right: equal values, and numbers up to rounding."""
    return all(same_value(want, value, ANSWER) for want, value in zip(expected, got, strict=True))


def _advice(got: Sequence[Value]) -> str:
    """What an answer with undefined values lacks."""
    if None not in got:
        return ""
    return "\n  hint: None means that nothing was selected there; give the aggregate a default"


# drawings


def _drawn(sop: SOp, tokens: tuple[Any, ...], expected: Sequence[Value]) -> str:
    """The program on an input, with the right answer below its own."""
    try:
        drawing = plan(sop, tokens)
    except TracrError:
        return ""
    last = drawing.layers[-1]
    below = replace(last, rows=(*last.rows, DrawnRow("should be", tuple(expected))))
    return Drawing(replace(drawing, layers=(*drawing.layers[:-1], below))).svg


def _drawn_below(failing: RASPExpr, tokens: tuple[Any, ...]) -> str:
    """The largest part that an operation reads, if the operation itself fails."""
    largest = max(failing.children, key=lambda part: len(topological([part])), default=None)
    try:
        return "" if largest is None else Drawing(plan(largest, tokens)).svg
    except TracrError:
        return ""
