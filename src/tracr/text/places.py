"""Places in a text: `file.rasp:3:5`, with the line and a caret under the place."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["Place", "Source", "Span"]

Span = tuple[int, int]  # offsets of the first character and of the one after the last
WIDTH = 100  # of a shown line; a longer line is cut


class Place(str):
    """The text `file.rasp:3:5`; `excerpt` is the line with a caret under the place."""

    source: Source
    span: Span
    example: str
    """The statements that set the running example for this place; empty for the default example."""

    def __new__(cls, source: Source, span: Span, example: str = "") -> Place:
        line, column = source.position(span[0])
        place = super().__new__(cls, f"{source.name}:{line}:{column}")
        place.source, place.span, place.example = source, span, example
        return place

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return (str, (str(self),))

    @property
    def excerpt(self) -> str:
        """The line, and a caret line below it."""
        line, column = self.source.position(self.span[0])
        text = self.source.line(line)
        start = column - 1
        length = max(1, min(self.span[1] - self.span[0], len(text) - start))
        first = max(0, start - WIDTH // 2) if len(text) > WIDTH else 0
        shown = text[first : first + WIDTH]
        caret = " " * (start - first) + "^" * min(length, max(1, WIDTH - (start - first)))
        return f"    {_printable(shown)}\n    {caret}"


def _printable(text: str) -> str:
    """The text with one column per character, and no character that moves a terminal's cursor."""
    return "".join(character if character.isprintable() else " " if character.isspace() else "?" for character in text)


@dataclass(frozen=True)
class Source:
    """A text and its name."""

    text: str
    name: str = "<rasp>"
    hidden: bool = field(default=False, compare=False)
    """Whether it is the library: its expressions get the place of the call."""

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(place + 1 for place, character in enumerate(self.text) if character == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """A line without its end."""
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : end]

    def place(self, span: Span) -> Place:
        """A place to show."""
        return Place(self, span)
