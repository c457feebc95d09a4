"""`tracr learn`: puzzles to solve in RASP."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracr.cli.options import Json, print_json
from tracr.errors import InputError, TracrError
from tracr.writing import write_file

if TYPE_CHECKING:
    from tracr.learn import Puzzle
    from tracr.learn.progress import PuzzleProgress

__all__ = ["learn"]

ACTIONS = ("--check", "--hint", "--solution", "--starter", "--grade")
NEEDS = {"--name": "--check", "--draw": "--check", "--force": "--solution", "--csv": "--grade"}


def learn(
    puzzle: Annotated[
        str | None, typer.Argument(metavar="PUZZLE", help="The number or name of a puzzle.", show_default=False)
    ] = None,
    check: Annotated[
        str | None, typer.Option(metavar="FILE", help="Check this .rasp file; - is standard input.", show_default=False)
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="The s-op to check; by default the last one.")] = "",
    draw: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="With --check: draw the smallest wrong input.", show_default=False),
    ] = None,
    hint: Annotated[bool, typer.Option("--hint", help="Show one more of the three hints.")] = False,
    solution: Annotated[bool, typer.Option("--solution", help="Show a solution, after solving the puzzle.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Show the solution of a puzzle that is not solved.")] = False,
    starter: Annotated[bool, typer.Option("--starter", help="Print a text to begin with.")] = False,
    grade: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Check all .rasp files of a class.", show_default=False)
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="With --grade: write the results.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the puzzles, show one, or check a solution.

    A program is checked on all inputs of its puzzle. The exit status is 0 if it solves the puzzle, and 1 if not. The
    file tracr/learn.json in $XDG_DATA_HOME (~/.local/share) remembers what you solved.

    Example: tracr learn 3 --check reverse.rasp
    """
    actions = {"--check": check, "--hint": hint, "--solution": solution, "--starter": starter, "--grade": grade}
    _refuse_mixed(puzzle, {**actions, "--name": name, "--draw": draw, "--force": force, "--csv": csv})
    if grade is not None:
        _grade(grade, csv, as_json)
    elif puzzle is None:
        _list(as_json)
    else:
        from tracr.learn import puzzle as find

        chosen = find(puzzle)
        if check is not None:
            _check(chosen, check, name, draw, as_json)
        elif hint:
            _hint(chosen)
        elif solution:
            _solution(chosen, force)
        elif starter:
            typer.echo(chosen.starter, nl=False)
        else:
            _show(chosen, as_json)


def _refuse_mixed(puzzle: str | None, options: Mapping[str, object]) -> None:
    """Refuse options that do not go together; `options` has the value of each, false if it is not given."""
    given = [option for option in ACTIONS if options[option]]
    if len(given) > 1:
        raise typer.BadParameter(f"give one of {' and '.join(given)}")
    for option, needed in NEEDS.items():
        if options[option] and not options[needed]:
            raise typer.BadParameter(f"{option} goes with {needed}")
    if options["--grade"] and puzzle is not None:
        raise typer.BadParameter("--grade reads the puzzles from the names of the files; leave out PUZZLE")
    if given and puzzle is None and not options["--grade"]:
        raise typer.BadParameter(f"which puzzle? write tracr learn 3 {given[0]}")


# progress


def _progress() -> tuple[PuzzleProgress, bool]:
    """What was solved so far, and whether the file may be written: one that cannot be read is left alone."""
    from tracr.learn.progress import PuzzleProgress, progress_file

    try:
        return PuzzleProgress.read(progress_file()), True
    except TracrError as error:
        typer.echo(f"tracr: warning: {error}", err=True)
        return PuzzleProgress(), False


def _keep(progress: PuzzleProgress) -> None:
    """Write the file; a failure is only a warning."""
    from tracr.learn.progress import progress_file

    try:
        progress.save(progress_file())
    except TracrError as error:
        typer.echo(f"tracr: warning: your progress is not kept: {error}", err=True)


# what the options do


def _list(as_json: bool) -> None:
    from tracr.cli.learn_screen import show_puzzles
    from tracr.learn import puzzles

    progress, _ = _progress()
    if as_json:
        print_json([{**one.as_json(), "solved": progress.layers.get(one.id)} for one in puzzles()])
    else:
        show_puzzles(puzzles(), progress.layers)


def _show(puzzle: Puzzle, as_json: bool) -> None:
    if as_json:
        print_json(puzzle.as_json())
        return
    typer.echo(str(puzzle))
    typer.echo(
        f"\nWrite your program to a file, and check it with\n    tracr learn {puzzle.number} --check {puzzle.id}.rasp"
    )


def _check(puzzle: Puzzle, file: str, name: str, draw: Path | None, as_json: bool) -> None:
    from tracr.cli.learn_screen import show_verdict

    if file != "-" and not Path(file).is_file():
        raise InputError(f"there is no file {file}", hint=f"tracr learn {puzzle.number} --starter > {file} makes one")
    if file.endswith(".py"):
        raise InputError(f"{file} is not a .rasp file", hint=f"in Python: learn.puzzle({puzzle.number}).check(program)")
    verdict = puzzle.check(sys.stdin.read() if file == "-" else Path(file), name)
    if as_json:
        print_json(verdict.as_json())
    else:
        show_verdict(puzzle, verdict)
    if draw is not None and verdict.counterexample is not None and verdict.counterexample.drawing is not None:
        typer.echo(f"wrote {verdict.counterexample.drawing.save(draw)}", err=True)
    if not verdict.solved:
        raise typer.Exit(1)
    progress, writable = _progress()
    if writable and verdict.layers is not None:
        _keep(progress.with_solved(puzzle.id, verdict.layers))


def _hint(puzzle: Puzzle) -> None:
    """Show the hints shown before, and the next one."""
    progress, writable = _progress()
    progress = progress.with_hint(puzzle.id, len(puzzle.hints))
    for number, hint in enumerate(puzzle.hints[: progress.hints[puzzle.id]], start=1):
        typer.echo(f"{number}. {hint}")
    if writable:
        _keep(progress)


def _solution(puzzle: Puzzle, force: bool) -> None:
    progress, _ = _progress()
    if puzzle.id not in progress.layers and not force:
        raise InputError(
            f"puzzle {puzzle.number} is not solved yet", hint="--hint shows a hint, --force the solution all the same"
        )
    typer.echo(puzzle.solution, nl=False)


def _grade(folder: Path, csv: Path | None, as_json: bool) -> None:
    from tracr.cli.learn_screen import show_grades
    from tracr.cli.screen import waiting
    from tracr.learn import grade

    with waiting("checking"):
        graded = grade(folder)
    if csv is not None:
        write_file(csv, graded.as_csv().encode())
    if as_json:
        print_json(graded.as_json())
    else:
        show_grades(graded)
