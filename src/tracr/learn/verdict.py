"""The result of a check: solved, or the smallest input with a wrong answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tracr.text.drawing import Drawing
from tracr.values import Value, short_repr

__all__ = ["Verdict", "WrongAnswer", "plain", "typed"]

LONGEST_SHOWN = 40  # characters of a string in a message


@dataclass(frozen=True)
class WrongAnswer:
    """The smallest input with a wrong answer: the shortest, and of these the first in the order of the vocabulary.

    `got` is None if the program fails on the input. `drawing` shows the program on the input, or a part of it that can
    be computed; it is None if there is nothing to draw.
    """

    input: tuple[Value, ...]
    expected: tuple[Value, ...]
    got: tuple[Value, ...] | None
    drawing: Drawing | None

    @property
    def svg(self) -> str:
        """The drawing as SVG; empty if there is none."""
        return "" if self.drawing is None else self.drawing.svg

    def as_json(self) -> dict[str, Any]:
        """The answer as JSON data."""
        return {
            "input": [plain(value) for value in self.input],
            "expected": [plain(value) for value in self.expected],
            "got": None if self.got is None else [plain(value) for value in self.got],
            "drawing": self.svg,
        }


@dataclass(frozen=True)
class Verdict:
    """What a check found. True if the puzzle is solved.

    Args:
        puzzle: the name of the puzzle.
        solved: whether the program is right on all inputs of the puzzle, and its transformer too.
        message: the result in a sentence or two, with what to do next.
        checked: on how many inputs the program was run.
        layers: the layers of its transformer, at the level that gives the fewest; None if it was not compiled.
        par: the fewest layers known.
        counterexample: the smallest input with a wrong answer.
        solution: a worked solution, if the puzzle is solved.
        warnings: what may be misread in the program's text.
    """

    puzzle: str
    solved: bool
    message: str
    checked: int
    layers: int | None
    par: int
    counterexample: WrongAnswer | None
    solution: str | None
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.solved

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"warning: {warning}" for warning in self.warnings)])

    def as_json(self) -> dict[str, Any]:
        """The verdict as JSON data; the warnings are part of the message."""
        return {
            "solved": self.solved,
            "message": str(self),
            "checked": self.checked,
            "layers": self.layers,
            "par": self.par,
            "counterexample": None if self.counterexample is None else self.counterexample.as_json(),
            "solution": self.solution,
        }

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.solved else "#bc4c00"
        parts = [f'<div style="border-left:4px solid {colour};padding-left:10px"><pre>{escape(str(self))}</pre>']
        if self.counterexample is not None and self.counterexample.drawing is not None:
            parts.append(f'<div style="overflow-x:auto">{self.counterexample.svg}</div>')
        if self.solution is not None:
            parts.append(f"<details><summary>A worked solution</summary><pre>{escape(self.solution)}</pre></details>")
        return "\n".join([*parts, "</div>"])


def plain(value: Value) -> Any:
    """A value as JSON has it; a value of another kind as text.

    >>> plain(True), plain(None), plain(("a", 1))
    (True, None, "('a', 1)")
    """
    return value if value is None or isinstance(value, bool | int | float | str) else short_repr(value)


def typed(values: Sequence[Value]) -> str:
    """A sequence of values as a student would write it.

    >>> typed(("a", "b")), typed((1, 0.5, True, None, "x"))
    ('["a", "b"]', '[1, 0.5, True, None, "x"]')
    """
    return f"[{', '.join(map(_typed, values))}]"


def _typed(value: Value) -> str:
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= LONGEST_SHOWN else f'"{value[:LONGEST_SHOWN]}..."'
    return f"{value:.4g}" if isinstance(value, float) else short_repr(value)
