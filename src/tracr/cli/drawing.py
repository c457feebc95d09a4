"""`tracr figure` draws publication figures of a model; `tracr draw` draws what a program computes."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracr.cli.inputs import read_vocabulary, read_words
from tracr.cli.options import (
    Causal,
    Input,
    Level,
    MaxLen,
    Name,
    Program,
    Tokens,
    Vocab,
    With,
    Without,
    choosing,
)
from tracr.cli.sources import DEFAULT_LENGTH, ZOO, Found, GivenOptions, compiled, find, input_of, switches, usual_input
from tracr.cli.textual import defines, is_textual, read_module
from tracr.errors import InputError
from tracr.rasp.base import RASPExpr
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.text.drawing import Drawing

__all__ = ["draw", "figure", "picture"]


class FigureKind(Enum):
    """The kinds of figure."""

    stream = "stream"
    attention = "attention"
    graph = "graph"
    weights = "weights"
    layers = "layers"
    slots = "slots"


class Rows(Enum):
    """Which dimensions of the residual stream are drawn."""

    auto = "auto"
    all = "all"
    used = "used"


def figure(
    program: Program,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write: .pdf, .svg, .png and others.")
    ],
    tokens: Tokens = None,
    given: Input = None,
    kind: Annotated[
        FigureKind,
        typer.Option(
            **choosing(FigureKind),
            show_default="stream",
            help="stream: the residual stream after each sub-layer. attention: each head and its selector. "
            "graph: the program with the domain of each s-op. weights: the matrices with labelled rows and columns. "
            "layers: the components of each layer. slots: the variables stored in each dimension.",
        ),
    ] = FigureKind.stream,
    rows: Annotated[
        Rows | None,
        typer.Option(
            **choosing(Rows),
            help="stream: all dimensions, or only those used (not always zero); auto: all up to 40.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help='Draw only this part; may be repeated. stream: "attn 0"; attention and weights: blocks.0.attn.0.',
            show_default=False,
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="INCHES", help="The largest width; wider figures are broken into rows.", show_default=False
        ),
    ] = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
) -> None:
    """Draw a figure of PROGRAM's model. Needs matplotlib: pip install 'tracr[viz]'.

    The kinds stream and attention show one input: TOKENS or --input, else the program's own example. The other kinds
    show the model and need no input.

    Example: tracr figure frac_prevs x a c x --level 0 -o fig.pdf
    """
    from tracr.cli.screen import waiting
    from tracr.viz import OF_AN_INPUT
    from tracr.viz.canvas import save_figure

    picture(output)
    choice = GivenOptions(vocab, max_len, level, causal, passes=switches(switched_on, switched_off))
    name, words, one_word = _input(program, name, tokens, given)
    found = find(program, name, choice, words)
    asked = {
        "rows": rows.value if rows else None,
        "only": only or None,
        "width": None if kind is FigureKind.graph else width,
    }
    options = {option: value for option, value in asked.items() if value is not None}
    with waiting(f"drawing {found.name}"):
        model = compiled(found, choice)
        size = (model.options.vocab, model.program.lengths[1])
        xs = input_of(found, words, *size, one_word) if words else usual_input(found, *size)
        drawn = model.figure(kind.value, xs if kind.value in OF_AN_INPUT else None, **options)
        save_figure(drawn, output)
    inches = " by ".join(f"{size:.1f}" for size in drawn.get_size_inches())
    typer.echo(f"{output}: {kind.value} of {found.name}, {inches} inches")


def draw(
    program: Program,
    tokens: Tokens = None,
    given: Input = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The s-op or selector of a .rasp file; by default the last s-op."),
    ] = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The .svg file to write; by default standard output."),
    ] = None,
) -> None:
    """Draw the values of PROGRAM on an input, as SVG.

    Selectors are drawn as grids, values as rows. This needs no matplotlib. The input is TOKENS or --input, else the
    program's own example. After a .rasp file, the first of TOKENS can be the name of an s-op or selector: tracr draw
    program.rasp y hello

    The layers in the drawing are the program's steps of attention, as the RASP paper counts them. The model can have
    more layers (`tracr info`): counting and combining selectors take several.

    Example: tracr draw sort 3 1 2 1 -o sort.svg
    """
    if output is not None and output.suffix.lower() != ".svg":
        raise typer.BadParameter(
            f"{output} must end in .svg; `tracr figure` writes .png and .pdf", param_hint="--output"
        )
    name, words, one_word = _input(program, name, tokens, given)
    if is_textual(program):
        drawing = _of_text(program, name, words, vocab, max_len)
    else:
        drawing = _of_program(find(program, name, GivenOptions(vocab, max_len), words), words, one_word)
    if output is None:
        typer.echo(drawing.svg, nl=False)
        return
    drawing.save(output)
    typer.echo(f"{output}: {drawing.summary}")
    typer.echo("The layers drawn are the program's steps of attention; the model (tracr info) can have more layers.")


def _of_text(program: str, name: str | None, words: list[str], vocab: str | None, max_len: int | None) -> Drawing:
    """Draw an s-op or a selector of a .rasp file."""
    from tracr.text.drawing import draw as draw_expression

    known = None if vocab is None else read_vocabulary(vocab)
    text = read_module(program, name, words, known, max_len)
    usual = text.module.example or (known or list("hello"))[:max_len]
    return draw_expression(text.module[text.name], text.tokens if words else usual)


def _of_program(found: Found, words: list[str], one_word: bool) -> Drawing:
    """Draw a program of the library or of a Python file."""
    from tracr.text.drawing import draw as draw_expression

    if found.model is not None:
        raise InputError(f"{found.name} is a saved model, not a program", hint="draw the file it came from")
    if not isinstance(found.program, RASPExpr):
        raise InputError(f"{found.name} is several programs", hint="name one of them")
    if found.causal:
        raise InputError(
            f"{found.name} is meant for causal attention, which draw does not draw",
            hint=f"tracr show {ZOO}{found.name}, or tracr figure",
        )
    xs: list[Value] | None
    if found.vocab is None:
        xs = read_words(words, numbers=True) if words else None
    else:
        size = (found.vocab, found.max_seq_len or DEFAULT_LENGTH)
        xs = input_of(found, words, *size, one_word) if words else usual_input(found, *size)
    if xs is None:
        raise InputError(f"{found.name} has no example that fits", hint="add an input: --input")
    return draw_expression(found.program, xs)


def picture(output: Path) -> None:
    """Refuse an output file that cannot be written, before any work is done."""
    from tracr.extras import need

    formats = need("matplotlib.figure", extra="viz").Figure().canvas.get_supported_filetypes()
    if output.suffix[1:].lower() not in formats:
        raise typer.BadParameter(f"{output} must end in one of .{', .'.join(sorted(formats))}")
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")


def _input(
    program: str, name: str | None, tokens: list[str] | None, given: str | None
) -> tuple[str | None, list[str], bool]:
    """The name of the expression to draw, the words of the input, and whether the input came from --input."""
    words = tokens or []
    if words and name is None and is_textual(program) and defines(program, words[0]):
        name, words = words[0], words[1:]
    if given is None:
        return name, words, False
    if words:
        raise typer.BadParameter(f"the input is typed twice: {' '.join(words)} and --input {given}")
    return name, [given], True
