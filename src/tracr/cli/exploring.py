"""`tracr explore`: writes the page that explains a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracr.cli.options import Causal, Level, MaxLen, MaxMemory, Name, Program, Tokens, Vocab, With, Without
from tracr.cli.sources import GivenOptions, compiled, find, input_of, switches, usual_input

__all__ = ["explore"]


def explore(
    program: Program,
    tokens: Tokens = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The page to write; by default NAME.html.", show_default=False
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the explorer page of PROGRAM, one HTML file.

    The page runs PROGRAM and its transformer and shows how the transformer computes it. The page works without a
    network and needs no other file. TOKENS are the input it starts with.

    Example: tracr explore sort 3 1 2 1 -o sort.html
    """
    from tracr.cli.screen import waiting

    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{output} must end in .html", param_hint="--output")
    choice = GivenOptions(
        vocab, max_len, level, causal, passes=switches(switched_on, switched_off), max_memory=max_memory
    )
    found = find(program, name, choice, tokens or [])
    with waiting(f"compiling {found.name}"):
        model = compiled(found, choice)
        size = (model.options.vocab, model.program.lengths[1])
        words = input_of(found, tokens, *size) if tokens else usual_input(found, *size)
        page = model.explore(words, name=found.name, description=found.description)
        path = page.save(output or Path(f"{found.name}.html"))
    typer.echo(f"{path}: {path.stat().st_size / 1000:,.0f} kB, open it in any browser")
    if show:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
