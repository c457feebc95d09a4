"""A puzzle: its statement, examples, hints, par and solution, and the right answers in plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tracr.errors import InputError
from tracr.learn.checking import SECONDS, check
from tracr.learn.reading import Program
from tracr.learn.verdict import Verdict, plain, typed
from tracr.values import Value

__all__ = ["MOST_STARS", "Puzzle"]

MOST_STARS = 5

Tokens = tuple[Any, ...]


@dataclass(frozen=True)
class Puzzle:
    """A task to solve in RASP.

    Args:
        number: its place in the list, from 1.
        id: its name in programs and files.
        title: its name for readers.
        stars: how hard it is, from 1 to 5.
        statement: the task.
        vocab, max_len: the inputs have 1 to `max_len` tokens of this vocabulary.
        shown: inputs to show the right answer on.
        answers: the right answer to an input, in plain Python; it shares no code with the solution.
        hints: three, each telling more than the one before.
        par: the fewest layers known.
        solution: a worked solution in the textual language; its first line explains it.
        accepts: a condition on the inputs, for puzzles that are not about all of them.
        about: the same condition in words.
    """

    number: int
    id: str
    title: str
    stars: int
    statement: str
    vocab: tuple[Value, ...]
    max_len: int
    shown: tuple[str, ...]
    answers: Callable[[Tokens], list[Any]]
    hints: tuple[str, str, str]
    par: int
    solution: str
    accepts: Callable[[Tokens], bool] | None = None
    about: str = ""

    def inputs(self) -> Iterator[Tokens]:
        """All inputs of the puzzle: the short ones first, those of one length in the order of the vocabulary."""
        for length in range(1, self.max_len + 1):
            for tokens in itertools.product(self.vocab, repeat=length):
                if self.accepts is None or self.accepts(tokens):
                    yield tokens

    def answer(self, tokens: Sequence[Value]) -> list[Value]:
        """The right answer to an input.

        >>> from tracr import learn
        >>> learn.puzzle("reverse").answer("abc")
        ['c', 'b', 'a']
        """
        given = tuple(tokens)
        strange = [token for token in given if token not in self.vocab]
        if strange or not 1 <= len(given) <= self.max_len or not (self.accepts is None or self.accepts(given)):
            raise InputError(f"{typed(given)} is not an input of {self.id}", hint=f"its inputs are {self.range}")
        return self.answers(given)

    @property
    def range(self) -> str:
        """The inputs, in words."""
        tokens = " ".join(map(str, self.vocab))
        return f"1 to {self.max_len} tokens of: {tokens}" + (f"; {self.about}" if self.about else "")

    @property
    def examples(self) -> list[tuple[list[Value], list[Value]]]:
        """Some inputs with the right answers."""
        return [(list(tokens), self.answer(tokens)) for tokens in self.shown]

    @property
    def starter(self) -> str:
        """A text to begin with: it can be run, and is not a solution."""
        return (
            f'# {self.number}. {self.title}: change the last line.\nset example "{self.shown[0]}"\n\nanswer = tokens;\n'
        )

    def check(self, program: Program, name: str = "", *, seconds: float = SECONDS) -> Verdict:
        """Check a program on all inputs of the puzzle, and compile it.

        Args:
            program: the text of a .rasp program, the path of one (a `Path`), an s-op, or a function without arguments
                that returns one.
            name: which s-op of a text; by default the last one that a statement computes.
            seconds: a time limit. In the main thread, where the system has interval timers, it stops any Python code;
                elsewhere it is looked at between operations and between passes of the compiler.

        A text that cannot be read raises a `SourceError` with its line and column. A program that fails on an input has
        that input as counterexample.
        """
        return check(self, program, name, seconds)

    def as_json(self) -> dict[str, Any]:
        """What the playground shows: everything but the solution."""
        return {
            "id": self.id,
            "number": self.number,
            "title": self.title,
            "statement": self.statement,
            "vocab": [plain(token) for token in self.vocab],
            "max_len": self.max_len,
            "examples": [
                {"input": [plain(x) for x in tokens], "output": [plain(y) for y in output]}
                for tokens, output in self.examples
            ],
            "hints": list(self.hints),
            "par": self.par,
            "starter": self.starter,
            "stars": self.stars,
            "inputs": self.range,
        }

    @property
    def difficulty(self) -> str:
        """The stars as text."""
        return "★" * self.stars + "☆" * (MOST_STARS - self.stars)

    def __repr__(self) -> str:
        return f"Puzzle({self.number}, {self.id}: {self.title}, {self.difficulty}, par {self.par})"

    def __str__(self) -> str:
        lines = [f"{self.number}. {self.title}  {self.difficulty}  par {self.par}", "", self.statement, ""]
        lines += [f"    {typed(tokens)} -> {typed(output)}" for tokens, output in self.examples]
        return "\n".join([*lines, "", f"Inputs: {self.range}."])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{escape(typed(tokens))}</code></td><td><code>{escape(typed(output))}</code></td></tr>"
            for tokens, output in self.examples
        )
        hints = "".join(
            f"<details><summary>Hint {number}</summary>{escape(hint)}</details>"
            for number, hint in enumerate(self.hints, start=1)
        )
        return (
            f"<h3>{self.number}. {escape(self.title)} {self.difficulty}</h3><p>{escape(self.statement)}</p>"
            f"<table><tr><th>input</th><th>answer</th></tr>{rows}</table>"
            f"<p>Inputs: {escape(self.range)}. Par: {self.par} layer{'s' * (self.par != 1)}.</p>{hints}"
        )
