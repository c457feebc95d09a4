"""Checks a program on all inputs of a puzzle, compiles it, and runs the transformer on them too.

Every step is bounded: the number of operations of the program, the length of its strings, the sizes that the compiler
may reach, and the time (`time_limit.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracr.arguments import number, text
from tracr.errors import CompileError, EvaluationError, ExpressionError, InputError, TracrError, TracrWarning
from tracr.learn.drawn import drawn, drawn_before
from tracr.learn.reading import Program, StudentProgram, read_program
from tracr.learn.time_limit import Clock, TimeIsUp, time_limit
from tracr.learn.verdict import Verdict, WrongAnswer, typed
from tracr.model.compiling import compile
from tracr.nearness import ANSWER, same_value
from tracr.rasp.base import RASPExpr
from tracr.rasp.elementwise import SOp
from tracr.rasp.interpreter import DefaultRASPEvaluator
from tracr.rasp.traversal import topological
from tracr.text.runner import HINTS
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.learn.puzzle import Puzzle
    from tracr.model.compiled import CompiledModel

__all__ = ["SECONDS", "check"]

SECONDS = 20.0
MOST_PARTS = 300  # operations of a program
LONGEST_STRING = 1_000  # characters of a value
LEVELS = (1, 2)  # at which the program is compiled; the model with fewer layers counts
LIMITS: dict[str, Any] = {
    "max_values": 20_000,
    "max_cells": 200_000,
    "max_parameters": 5_000_000,
    "max_memory": "512MB",
}


def check(puzzle: Puzzle, program: Program, name: str, seconds: float) -> Verdict:
    """The verdict on a program."""
    name, seconds = text("name", name), number("seconds", seconds, above=0)
    attempt: _Attempt | None = None
    try:
        with time_limit(seconds) as clock:
            student = read_program(program, name)
            attempt = _Attempt(puzzle, student, clock)
            return attempt.verdict()
    except TimeIsUp:
        if attempt is not None:
            return attempt.failed(
                f"Not finished: the time is up {attempt.reached}.\n  hint: write the program with fewer operations"
            )
        message = "Not finished: the time is up before the program was read.\n  hint: check that every recursion ends"
        return Verdict(puzzle.id, False, message, 0, None, puzzle.par, None, None)


class _Attempt:
    """A program on its way through the inputs of a puzzle."""

    def __init__(self, puzzle: Puzzle, student: StudentProgram, clock: Clock) -> None:
        self.puzzle, self.sop, self.clock = puzzle, student.sop, clock
        self.warnings = student.warnings
        self.order = topological([student.sop])
        self.right: list[tuple[Any, ...]] = []  # the inputs with a right answer, so far
        self.compiling = False
        if len(self.order) > MOST_PARTS:
            raise ExpressionError(
                f"the program has {len(self.order):,} operations, and a puzzle takes at most {MOST_PARTS}",
                hint="every puzzle has a solution with fewer than 50",
            )

    @property
    def reached(self) -> str:
        """How far it is, in words."""
        done = f"after {len(self.right):,} inputs, all of them right"
        if self.compiling:
            return f"{done}, while the program was compiled"
        return done if self.right else "on the first input"

    def verdict(self) -> Verdict:
        """Run the program, then its transformer."""
        for tokens in self.puzzle.inputs():
            wrong = self.wrong_on(tokens)
            if wrong is not None:
                return wrong
            self.right.append(tokens)
        self.compiling = True
        try:
            model = self.compiled()
        except CompileError as error:
            return self.not_a_transformer(error)
        wrong = self.wrong_model(model)  # a verdict that is not solved is false
        return self.solved(model.n_layers) if wrong is None else wrong

    # the program

    def wrong_on(self, tokens: tuple[Any, ...]) -> Verdict | None:
        """The verdict if the program is wrong on this input."""
        expected = tuple(self.puzzle.answers(tokens))
        should = f"Not yet: on {typed(tokens)} it should give {typed(expected)}, but"
        interpreter, values = DefaultRASPEvaluator(), dict[RASPExpr, Any]()
        for expr in self.order:
            self.clock.look()
            try:
                values[expr] = interpreter.evaluate_one(expr, list(tokens), [values[part] for part in expr.children])
                _check_strings(expr, values[expr])
            except (EvaluationError, InputError) as error:
                wrong = WrongAnswer(tokens, expected, None, drawn_before(expr, tokens))
                return self.failed(f"{should} fails.\n{_explained(error)}", wrong)
        got = values[self.sop]
        if _same(expected, got):
            return None
        wrong = WrongAnswer(tokens, expected, tuple(got), drawn(self.sop, tokens, expected))
        return self.failed(f"{should} gives {typed(got)}.{_advice(expected, got)}", wrong)

    # the transformer

    def compiled(self) -> CompiledModel:
        """The model with the fewest layers; a refusal only if no level can compile the program."""
        vocab, length, look = self.puzzle.vocab, self.puzzle.max_len, self.clock.look
        models: list[CompiledModel] = []
        refusals: list[CompileError] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TracrWarning)
            for level in LEVELS:
                try:
                    models.append(compile(self.sop, vocab, length, level=level, watch=look, **LIMITS))
                except CompileError as error:
                    refusals.append(error)
        if not models:
            raise refusals[0]
        return min(models, key=lambda model: model.n_layers)

    def wrong_model(self, model: CompiledModel) -> Verdict | None:
        """The verdict if the transformer is wrong on an input."""
        for tokens, got in zip(self.right, model([list(tokens) for tokens in self.right]), strict=True):
            expected = tuple(self.puzzle.answers(tokens))
            if not _same(expected, got):
                return self.failed(
                    f"Right on all {len(self.right):,} inputs, but its transformer is not: on {typed(tokens)} it "
                    f"should give {typed(expected)}, but gives {typed(got)}.\n"
                    "  hint: do not distinguish numbers that differ only by rounding",
                    WrongAnswer(tokens, expected, tuple(got), drawn(self.sop, tokens, expected)),
                )
        return None

    # verdicts

    def solved(self, layers: int) -> Verdict:
        """The verdict on a solution."""
        par = self.puzzle.par
        compared = "that is par" if layers == par else f"par is {par}"
        praise = " Fewer than any solution we know!" if layers < par else ""
        message = (
            f"Solved: right on all {len(self.right):,} inputs, as a program and as a transformer of {layers} "
            f"layer{'s' * (layers != 1)} ({compared}).{praise}"
        )
        done = len(self.right)
        return Verdict(self.puzzle.id, True, message, done, layers, par, None, self.puzzle.solution, self.warnings)

    def not_a_transformer(self, error: CompileError) -> Verdict:
        """The verdict on a right program that the compiler refuses."""
        message = (
            f"Right on all {len(self.right):,} inputs, but not yet a transformer: the compiler refuses it.\n{error}"
        )
        if self.puzzle.accepts is not None:
            message += "\nThe compiler considers all inputs of the vocabulary, not only those of the puzzle."
        return self.failed(message)

    def failed(self, message: str, wrong: WrongAnswer | None = None) -> Verdict:
        """The verdict on a program that is not a solution."""
        checked = len(self.right) + (wrong is not None and not self.compiling)
        return Verdict(self.puzzle.id, False, message, checked, None, self.puzzle.par, wrong, None, self.warnings)


def _check_strings(expr: RASPExpr, values: Sequence[Value]) -> None:
    """Refuse strings that would fill the memory."""
    if isinstance(expr, SOp) and any(isinstance(value, str) and len(value) > LONGEST_STRING for value in values):
        raise EvaluationError(
            f"makes strings of more than {LONGEST_STRING:,} characters",
            expression=expr,
            hint="no puzzle needs long strings: work with single tokens and numbers",
        )


def _explained(error: TracrError) -> TracrError:
    """An error of the program, with a hint for what a Python function raised."""
    hint = next((HINTS[kind] for kind in HINTS if isinstance(error.__cause__, kind)), "")
    if hint and not error.diagnostic.hint:
        error.hint_at(hint)
    return error


def _same(expected: Sequence[Value], got: Sequence[Value]) -> bool:
    """Whether an answer is right: equal values, and numbers up to rounding."""
    return all(same_value(want, value, ANSWER) for want, value in zip(expected, got, strict=True))


def _advice(expected: Sequence[Value], got: Sequence[Value]) -> str:
    """A hint for an answer with undefined values, or with values of another kind."""
    if None in got:
        return "\n  hint: None means that nothing was selected there; give the aggregate a default"
    if list(map(str, expected)) == list(map(str, got)):
        wanted = "strings" if any(isinstance(value, str) for value in expected) else "numbers"
        return f'\n  hint: the answer should be {wanted}: the number 1 is not the string "1"'
    return ""
