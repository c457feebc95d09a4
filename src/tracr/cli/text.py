"""The commands for .rasp files: repl and fmt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tracr.errors import InputError
from tracr.writing import write_file

__all__ = ["fmt", "repl"]

Files = Annotated[list[Path], typer.Argument(metavar="FILES", help="The .rasp files; - is standard input.")]


def repl(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A .rasp file to start with.")] = None,
) -> None:
    """Write RASP interactively.

    Every definition is shown on an example input. Type :help for the commands that compile, verify, draw and save
    definitions. Statements can also come from a pipe: the exit status is then 1 if one of them had an error.

    Example: printf 'y = indices + 1;\\n:verify y\\n' | tracr repl
    """
    from tracr.cli.repl.console import interact
    from tracr.cli.repl.session import Session

    session = Session()
    if file is not None:
        if not file.is_file():
            raise InputError(f"there is no file {file}", hint="check the name")
        typer.echo(session.start_with(file))
    if not interact(session):
        raise typer.Exit(1)


def fmt(
    files: Files,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with status 1 if a file would change.")
    ] = False,
) -> None:
    """Format .rasp files.

    Writes one statement per line, with spaces around operators. Comments are kept.

    Example: tracr fmt program.rasp
    """
    from tracr.text.layout import format_text
    from tracr.text.runner import read_file

    changed = []
    for path in files:
        if str(path) == "-":
            typer.echo(format_text(sys.stdin.read(), "<stdin>"), nl=False)
            continue
        if not path.is_file():
            raise InputError(f"there is no file {path}", hint="check the name")
        before = read_file(path).text
        after = format_text(before, path.name)
        if after == before:
            continue
        changed.append(path)
        if not check:
            write_file(path, after.encode())
    for path in changed:
        typer.echo(f"{'would change' if check else 'changed'} {path}")
    if check and changed:
        raise typer.Exit(1)
