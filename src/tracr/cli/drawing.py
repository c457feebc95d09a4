"""`tracr figure`: publication figures of a model."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracr.cli.commands import Causal, Level, MaxLen, Name, Program, Vocab, With, Without
from tracr.cli.sources import Choice, compiled, find, read_tokens, read_vocabulary, switches
from tracr.rasp.values import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tracr.model.compiled import CompiledModel

__all__ = ["figure"]


class Kind(Enum):
    """What can be drawn."""

    stream = "stream"
    attention = "attention"
    graph = "graph"
    weights = "weights"
    layers = "layers"
    slots = "slots"


class Rows(Enum):
    """Which dimensions of the residual stream."""

    auto = "auto"
    all = "all"
    used = "used"


def figure(
    program: Program,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write: .pdf, .svg, .png and others.")
    ],
    given: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="TOKENS",
            help="The input, for stream and attention: x,a,c,x or xacx or a JSON list.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(
            help="stream: the residual stream after each sub-layer. attention: each head beside its selector. "
            "graph: the program with value sets. weights: in their labelled bases. layers: which component is where. "
            "slots: which variable is in which dimension."
        ),
    ] = Kind.stream,
    rows: Annotated[
        Rows | None,
        typer.Option(help="stream: all dimensions, or those used, not zero throughout.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help='Only this part; may be repeated. stream: "attn 1"; attention and weights: blocks.0.attn.0.',
            show_default=False,
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(min=1, metavar="INCHES", help="How wide it may be before it is broken.", show_default=False),
    ] = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
) -> None:
    """Draw a figure of PROGRAM. Needs matplotlib: pip install 'tracr[viz]'.

    Example: tracr figure frac_prevs --input x,a,c,x --level 0 -o fig.pdf
    """
    from tracr.cli.screen import waiting
    from tracr.extras import need

    formats = need("matplotlib.figure", extra="viz").Figure().canvas.get_supported_filetypes()
    if output.suffix[1:].lower() not in formats:
        raise typer.BadParameter(f"{output} must end in one of .{', .'.join(sorted(formats))}", param_hint="--output")
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}", param_hint="--output")
    choice = Choice(vocab, max_len, level, causal, passes=switches(switched_on, switched_off))
    found = find(program, name, choice)
    asked = {"rows": rows.value if rows else None, "only": only or None, "width": width}
    options = {option: value for option, value in asked.items() if value is not None}
    with waiting(f"drawing {found.name}"):
        model = compiled(found, choice)
        tokens = None if given is None else read_input(given, model)
        drawn = model.figure(kind.value, tokens, **options)
        _write(drawn, output)
    inches = " by ".join(f"{size:.1f}" for size in drawn.get_size_inches())
    typer.echo(f"{output}: {kind.value} of {found.name}, {inches} inches")


def read_input(text: str, model: CompiledModel) -> list[Value]:
    """An input typed as one word: tokens with commas, a JSON list, a single token, or characters."""
    vocab = model.options.vocab
    if text in map(str, vocab):
        return read_tokens([text], vocab)
    return read_tokens([str(token) for token in read_vocabulary(text)], vocab)


def _write(drawn: Figure, output: Path) -> None:
    """Write the figure beside its place, then move it there: a file is never half written."""
    from tracr.viz.canvas import write_figure

    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            write_figure(drawn, file, output.suffix[1:].lower())
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
