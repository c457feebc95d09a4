"""The place of an expression in the text of a `.rasp` program, and its own words there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tracr.ir.program import Program
from tracr.rasp.expressions import RASPExpr
from tracr.text.places import Place

__all__ = ["SourceTexts", "one_line"]

ORIGIN = re.compile(r"(.+?):(\d+)(?::(\d+))?")  # file.py:12 or file.rasp:3:5
MOST_CHARACTERS = 90  # of the text of a line


@dataclass(frozen=True)
class SourceTexts:
    """What the source text says about a program.

    `text` is the source, `file` its name in origins. `whole` are the numbers of the expressions that are all of what
    was written at their place; others are a part of one, such as those that a library function is made of.
    """

    text: str
    file: str
    whole: frozenset[int]

    @staticmethod
    def of(program: Program, expressions: Sequence[RASPExpr], text: str) -> SourceTexts:
        """The source of a program: the file its outputs were written in, or most of its expressions."""
        nodes = [program.sops[number] for _, number in program.outputs]
        files = Counter(file for node in nodes if (file := _file(node.origin)))
        files = files or Counter(file for node in program.sops.values() if (file := _file(node.origin)))
        inner = {
            id(child)
            for expr in expressions
            for child in expr.children
            if isinstance(expr.origin, Place) and _same(expr.origin, child.origin)
        }
        whole = frozenset(number for number, expr in enumerate(expressions) if id(expr) not in inner)
        return SourceTexts(text, files.most_common(1)[0][0] if files else "", whole)

    def row(self, origin: str) -> int | None:
        """The line that an expression was written on, from 1."""
        found = ORIGIN.fullmatch(origin)
        if found is None or found[1] != self.file or (isinstance(origin, Place) and not self._is_here(origin)):
            return None
        return int(found[2])

    def span(self, origin: str) -> tuple[int, int] | None:
        """The first character of an expression and the one after its last, as JavaScript counts characters."""
        if not isinstance(origin, Place) or not self._is_here(origin):
            return None
        first, last = (len(self.text[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in origin.span)
        return first, last

    def words(self, number: int, origin: str) -> str | None:
        """The text of an expression as it was written, if it is all that was written there."""
        if not isinstance(origin, Place) or number not in self.whole:
            return None
        return one_line(origin.source.text[slice(*origin.span)])

    def _is_here(self, place: Place) -> bool:
        return bool(self.text) and place.source.text == self.text


def one_line(text: str) -> str:
    """A text on one line, cut if it is long.

    >>> one_line("a +\\n   b")
    'a + b'
    """
    short = " ".join(text.split())
    return short if len(short) <= MOST_CHARACTERS else f"{short[: MOST_CHARACTERS - 1]}…"


def _file(origin: str) -> str:
    found = ORIGIN.fullmatch(origin)
    return found[1] if found else ""


def _same(place: Place, other: str) -> bool:
    return isinstance(other, Place) and (place.span, place.source) == (other.span, other.source)
