"""The commands for .rasp files: repl, fmt and draw."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tracr.cli.sources import read_vocabulary
from tracr.cli.textual import is_textual, module_and_name, read_input
from tracr.errors import InputError

__all__ = ["draw", "fmt", "repl"]

Files = Annotated[list[Path], typer.Argument(metavar="FILES", help="The .rasp files; - is standard input.")]


def repl(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A .rasp file to start with.")] = None,
) -> None:
    """Write RASP interactively: every definition is shown on a running example.

    Type :help for the commands that compile, verify and draw what was defined.
    """
    from tracr.cli.repl.console import interact
    from tracr.cli.repl.session import Session

    session = Session()
    if file is not None:
        if not file.is_file():
            raise InputError(f"there is no file {file}")
        typer.echo(session.start_with(file))
    interact(session)


def fmt(
    files: Files,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; status 1 if a file would change.")] = False,
) -> None:
    """Lay out .rasp files: a statement a line, spaces around operators, comments kept.

    Example: tracr fmt program.rasp
    """
    from tracr.rasp.text.layout import format_text
    from tracr.rasp.text.runner import read_file

    changed = []
    for path in files:
        if str(path) == "-":
            typer.echo(format_text(sys.stdin.read(), "<stdin>"), nl=False)
            continue
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        before = read_file(path).text
        after = format_text(before, path.name)
        if after == before:
            continue
        changed.append(path)
        if not check:
            part = path.with_name(f".{path.name}.part")
            part.write_text(after, encoding="utf-8")
            part.replace(path)
    for path in changed:
        typer.echo(f"{'would change' if check else 'changed'} {path}")
    if check and changed:
        raise typer.Exit(1)


def draw(
    program: Annotated[str, typer.Argument(metavar="FILE", help="A .rasp file, a library program or file.py:name.")],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which s-op or selector of the .rasp file.")
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="TOKENS", help="The input: characters (abc) or a JSON list.", show_default=False
        ),
    ] = None,
    vocab: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="The tokens, for checking the file.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The SVG file; standard output if none.", show_default=False)
    ] = None,
) -> None:
    """Draw what a program computes on an input: layers, heads, selectors as grids, values in rows.

    Example: tracr draw program.rasp y --input hello -o y.svg
    """
    from tracr.cli.sources import find
    from tracr.rasp.drawing import draw as draw_expression

    tokens = [] if given is None else read_input([given], ())
    if is_textual(program):
        module, chosen = module_and_name(program, name, read_vocabulary(vocab) if vocab else tokens or None, None)
        expr, usual = module[chosen], module.example or list("hello")
    else:
        found = find(program, name)
        if found.program is None:
            raise InputError(f"{found.name} is a saved model, not a program", hint="draw the file it came from")
        expr, usual = found.program, list(found.vocab or "hello")[: found.max_seq_len]
    drawing = draw_expression(expr, tokens or usual)
    if output is None:
        typer.echo(drawing.svg, nl=False)
    else:
        typer.echo(f"{drawing} in {drawing.save(output)}")
