"""Prints puzzles, verdicts and the results of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from tracr.cli.screen import Screen, plain_table, short

if TYPE_CHECKING:
    from tracr.learn import GradedFolder, Puzzle, Verdict
    from tracr.text.drawing import Drawing
    from tracr.values import Value

__all__ = ["show_grades", "show_puzzles", "show_verdict"]


def show_puzzles(puzzles: Sequence[Puzzle], solved: Mapping[str, int]) -> None:
    """Print all puzzles, with the layers of the user's solutions."""
    table = plain_table("", "puzzle", "title", "stars", "par", "solved with")
    for one in puzzles:
        mine = "" if one.id not in solved else f"✓ {solved[one.id]} layer{'s' * (solved[one.id] != 1)}"
        table.add_row(str(one.number), Text(one.id, "cyan"), one.title, one.difficulty, str(one.par), mine)
    screen = Screen()
    screen.print(table)
    done = sum(one.id in solved for one in puzzles)
    screen.print(Text(f"\n{done} of {len(puzzles)} solved. `tracr learn 1` shows the first; par counts layers."))


def show_verdict(puzzle: Puzzle, verdict: Verdict) -> None:
    """Print a verdict; for a wrong answer, the values of the definitions on the input; for a solution, what is next."""
    screen = Screen()
    screen.print(Text(str(verdict), "green" if verdict.solved else ""))
    wrong = verdict.counterexample
    if wrong is not None and wrong.drawing is not None:
        screen.print()
        _show_rows(screen, wrong.drawing)
        screen.print(Text("\n--draw FILE.svg draws this with the selectors."))
    elif verdict.solved:
        screen.print(Text(f"`tracr learn {puzzle.number} --solution` shows our solution."))


def _show_rows(screen: Screen, drawing: Drawing) -> None:
    """Print the rows of a drawing: the values of each s-op, position by position."""
    plan = drawing.plan
    rows: list[tuple[str, Sequence[Value]]] = [("tokens", plan.tokens)]
    for layer in plan.layers:
        rows += [(row.label, row.values) for head in layer.heads for row in head.rows]
        rows += [(row.label, row.values) for row in layer.rows]
    table = plain_table("", *(str(position) for position in range(len(plan.tokens))))
    for label, values in rows:
        table.add_row(Text(label, "cyan"), *(Text(short(value)) for value in values))
    screen.print(table)


def show_grades(graded: GradedFolder) -> None:
    """Print the result of every file, and how many puzzles each student solved."""
    screen = Screen()
    table = plain_table("student", "file", "puzzle", "result", "layers", "par", "counterexample")
    for one in graded.files:
        sizes = ("" if one.layers is None else str(one.layers), "" if one.par is None else str(one.par))
        result = Text(one.result, "green" if one.solved else "red")
        table.add_row(Text(one.student), Text(one.file), one.puzzle, result, *sizes, Text(one.counterexample))
    screen.print(table)
    screen.print()
    totals = plain_table("student", "solved")
    for student, solved in graded.solved.items():
        totals.add_row(Text(student), str(solved))
    screen.print(totals)
