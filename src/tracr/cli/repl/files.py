"""The files that a session writes: drawings, programs, and all that was typed."""

from __future__ import annotations

import re
from pathlib import Path

from tracr.errors import InputError
from tracr.text import syntax
from tracr.text.drawing import Drawing
from tracr.text.layout import format_text
from tracr.text.places import Source
from tracr.writing import write_file

__all__ = ["Notebook", "drawn", "file_name", "write_new"]

UNENDED = (syntax.Definition, syntax.Loop, syntax.SetExample, syntax.Examples)  # statements without a semicolon
SHOWN_ONLY = (syntax.Draw, syntax.ShowExample, syntax.FullDisplay, syntax.Leave, syntax.Empty)
OUT = re.compile(r"\bout\b")


class Notebook:
    """The statements of a session that succeeded, in order, and the files it wrote."""

    def __init__(self) -> None:
        self.statements: list[tuple[syntax.Statement, str]] = []
        self.written: set[Path] = set()

    def add(self, source: Source, statement: syntax.Statement) -> None:
        """Keep a statement, unless it only shows something."""
        if not isinstance(statement, SHOWN_ONLY):
            start, end = statement.span
            end_mark = "" if isinstance(statement, UNENDED) else ";"
            self.statements.append((statement, f"{source.text[start:end]}{end_mark}"))

    def save(self, path: Path) -> str:
        """Write the statements to a .rasp file; a value that was only looked at is left out unless `out` reads it."""
        looks = any(OUT.search(text) for _, text in self.statements)
        kept = [text for one, text in self.statements if looks or not isinstance(one, syntax.Expression)]
        if not kept:
            raise InputError("there is nothing to save", hint="define something: y = indices + 1;")
        return write_new(path, "\n".join(kept), self.written)


def write_new(path: Path, text: str, written: set[Path]) -> str:
    """Write a program to a new file, or over one that this session wrote."""
    if path.exists() and path.resolve() not in written:
        raise InputError(f"{path} exists already", hint="name another file, or delete it")
    write_file(path, format_text(text, path.name).encode())
    written.add(path.resolve())
    return f"saved in {path}"


def drawn(drawing: Drawing, path: Path) -> str:
    """Write a drawing."""
    return f"drawn into {drawing.save(path)}"


def file_name(name: str, suffix: str) -> Path:
    """A file named after an expression.

    >>> str(file_name("x+1", ".svg")), str(file_name("+", ""))
    ('x1.svg', 'program')
    """
    safe = "".join(character for character in name if character.isalnum() or character in "_-")
    return Path(f"{safe or 'program'}{suffix}")
