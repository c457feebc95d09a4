"""The command line: `tracr list`, `tracr run NAME TOKENS...`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tracr.errors import InputError, TracrError
from tracr.rasp.values import Value

__all__ = ["main", "read_tokens"]

app = typer.Typer(
    help="Compile RASP programs into transformers and run them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; our own errors are printed without a traceback and exit with status 1."""
    try:
        app()
    except TracrError as error:
        typer.echo(f"tracr: {error}", err=True)
        sys.exit(1)


def read_tokens(words: Sequence[str], vocab: Sequence[Value]) -> list[Value]:
    """Words typed on the command line as tokens: `3` is the number 3 if that is in the vocabulary and "3" is not.

    >>> read_tokens(["3", "a"], [3, "a"])
    [3, 'a']
    """
    by_text: dict[str, list[Value]] = {}
    for token in vocab:
        by_text.setdefault(str(token), []).append(token)
    tokens = []
    for word in words:
        meant = by_text.get(word, [word])
        if len(meant) > 1:
            raise InputError(f"{word!r} could be any of {meant!r}", hint="the vocabulary has tokens that print alike")
        tokens.append(meant[0])
    return tokens


@app.command("list")
def list_programs() -> None:
    """List the programs of the library."""
    from tracr.rasp.programs import EXAMPLES

    width = max(map(len, EXAMPLES))
    for name, example in EXAMPLES.items():
        vocab = " ".join(map(str, example.vocab))
        typer.echo(f"{name:<{width}}  {example.description}  (tokens {vocab}; up to {example.max_seq_len})")


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A program of the library; `tracr list` names them.")],
    tokens: Annotated[list[str] | None, typer.Argument(help="The input, one token after the other.")] = None,
    level: Annotated[int, typer.Option(help="Optimisation level: 0 (the paper's structure) or 1.")] = 1,
    causal: Annotated[bool, typer.Option(help="Mask attention to earlier positions.")] = False,
    max_len: Annotated[int | None, typer.Option(help="The longest input to compile for.")] = None,
) -> None:
    """Compile a program of the library and run it on TOKENS, next to the interpreter.

    Example: tracr run frac_prevs x a c x
    """
    import tracr
    from tracr.rasp.interpreter import evaluate
    from tracr.rasp.programs import EXAMPLES

    if name not in EXAMPLES:
        raise InputError(f"no program {name!r} in the library", hint=f"there are {', '.join(EXAMPLES)}")
    example = EXAMPLES[name]
    words = read_tokens(tokens or [], example.vocab)
    model = tracr.compile(example.program, example.vocab, max_len or example.max_seq_len, causal, level)
    output = model(words)
    expected = evaluate(example.program, words, causal=causal)
    typer.echo(f"{name}: {example.description}")
    typer.echo(f"compiled to {model.n_layers} layers, {model.d_model} dimensions, {model.n_parameters:,} parameters\n")
    rows = [("position", range(len(words))), ("token", words), ("model", output), ("interpreter", expected)]
    typer.echo(_table(rows))


def _table(rows: Sequence[tuple[str, Sequence[object]]]) -> str:
    """Rows with a title each, in columns."""
    cells = [
        [title, *(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row)] for title, row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in cells)


if __name__ == "__main__":
    main()
