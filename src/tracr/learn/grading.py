"""Homework: `assert_solves` for tests of a class, and `grade` for a folder of .rasp files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from tracr.arguments import path as as_path
from tracr.errors import InputError, TracrError, UnknownName
from tracr.learn.catalogue import puzzle
from tracr.learn.checking import SECONDS
from tracr.learn.reading import Program
from tracr.learn.verdict import typed
from tracr.text.runner import read_file

__all__ = ["GradedFile", "GradedFolder", "assert_solves", "grade"]

COLUMNS = ("student", "file", "puzzle", "result", "layers", "par", "checked", "counterexample", "message")
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets run cells that begin with one of these


def assert_solves(which: int | str, program: Program, name: str = "", *, within: int | None = None) -> None:
    """Fail with the verdict unless the program solves the puzzle; for tests.

    Args:
        which: the number or the name of the puzzle.
        program: as for `Puzzle.check`.
        name: which s-op of a text.
        within: the most layers that its transformer may have.

    >>> assert_solves("count", 'answer = selector_width(select(tokens, "a", ==));', within=1)
    """
    __tracebackhide__ = True
    chosen = puzzle(which)
    where = f"puzzle {chosen.number} ({chosen.id})"
    try:
        verdict = chosen.check(program, name)
    except TracrError as error:
        raise AssertionError(f"{where}: {error}") from error
    if not verdict.solved:
        raise AssertionError(f"{where}: {verdict}")
    if within is not None and (verdict.layers is None or verdict.layers > within):
        raise AssertionError(f"{where}: solved with {verdict.layers} layers, and at most {within} are allowed")


@dataclass(frozen=True)
class GradedFile:
    """The result of one file: `result` is "solved", "wrong", "error" or "no puzzle"."""

    student: str
    file: str
    puzzle: str
    result: str
    layers: int | None
    par: int | None
    checked: int
    counterexample: str
    message: str

    @property
    def solved(self) -> bool:
        """Whether the file solves its puzzle."""
        return self.result == "solved"

    @property
    def cells(self) -> tuple[str, ...]:
        """The values of `COLUMNS`, as text."""
        return tuple("" if (value := getattr(self, column)) is None else str(value) for column in COLUMNS)


@dataclass(frozen=True)
class GradedFolder:
    """The results of all files, sorted by student and puzzle. Notebooks display them as a table."""

    files: tuple[GradedFile, ...]

    @property
    def solved(self) -> dict[str, int]:
        """For each student, how many puzzles are solved."""
        found: dict[str, set[str]] = {}
        for one in self.files:
            found.setdefault(one.student, set()).update([one.puzzle] if one.solved else [])
        return {student: len(puzzles) for student, puzzles in found.items()}

    def as_json(self) -> list[dict[str, Any]]:
        """The results as JSON data."""
        return [asdict(one) for one in self.files]

    def as_csv(self) -> str:
        """The results as CSV, with a line of headings. Cells that a spreadsheet would run get a ' in front."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in self.files:
            writer.writerow([f"'{cell}" if cell.startswith(FORMULAS) else cell for cell in one.cells])
        return text.getvalue()

    def __str__(self) -> str:
        rows = [COLUMNS[:-1], *(one.cells[:-1] for one in self.files)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        lines = [f"<tr>{''.join(f'<th>{column}</th>' for column in COLUMNS)}</tr>"]
        lines += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in one.cells)}</tr>" for one in self.files]
        return f"<table>{''.join(lines)}</table>"


def grade(
    folder: str | Path, *, seconds: float = SECONDS, progress: Callable[[GradedFile], None] | None = None
) -> GradedFolder:
    """Check all .rasp files of a folder and its subfolders.

    The name of a file says which puzzle it solves: reverse.rasp, 3.rasp, or anna-reverse.rasp with the name of the
    student. Without a name in front, the student is the folder: anna/reverse.rasp. The files cannot load others and
    cannot run Python. `seconds` limits the check of each file, and `progress` is called with each result.
    """
    root = as_path("folder", folder, error=InputError)
    if not root.is_dir():
        raise InputError(f"there is no folder {root}", hint="name a folder of .rasp files")
    graded = []
    for path in sorted(path for path in root.rglob("*.rasp") if path.is_file()):
        graded.append(_graded(root, path, seconds))
        if progress is not None:
            progress(graded[-1])
    return GradedFolder(tuple(sorted(graded, key=lambda one: (one.student, one.puzzle, one.file))))


def _graded(root: Path, path: Path, seconds: float) -> GradedFile:
    """The result of one file."""
    file = path.relative_to(root).as_posix()
    student, _, which = path.stem.rpartition("-")
    student = student or path.parent.relative_to(root).as_posix()
    student = root.resolve().name if student == "." else student
    try:
        chosen = puzzle(which.lstrip("0"))
    except UnknownName as error:
        return GradedFile(student, file, "", "no puzzle", None, None, 0, "", str(error))
    try:
        verdict = chosen.check(read_file(path).text, seconds=seconds)
    except Exception as error:  # one file must not end the grading of a class
        message = str(error) if isinstance(error, TracrError) else f"{type(error).__name__}: {error}"
        return GradedFile(student, file, chosen.id, "error", None, chosen.par, 0, "", message)
    wrong = verdict.counterexample
    return GradedFile(
        student,
        file,
        chosen.id,
        "solved" if verdict.solved else "wrong",
        verdict.layers,
        verdict.par,
        verdict.checked,
        "" if wrong is None else typed(wrong.input),
        str(verdict),
    )
