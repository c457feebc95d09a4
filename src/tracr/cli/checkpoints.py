"""`tracr huggingface`: writes a model as a GPT-2 checkpoint."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tracr.cli.options import Causal, Level, MaxLen, MaxMemory, Name, Program, Vocab, With, Without, choosing
from tracr.cli.sources import GivenOptions, compiled, find, switches

__all__ = ["huggingface"]


class Activation(Enum):
    """The activation function of the neurons."""

    relu = "relu"
    gelu = "gelu"
    gelu_new = "gelu_new"


class Numbers(Enum):
    """How a numerical output is written as logits."""

    auto = "auto"
    classes = "classes"
    column = "column"


def huggingface(
    program: Program,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.", show_default=False)],
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    activation: Annotated[
        Activation,
        typer.Option(**choosing(Activation), show_default="relu", help="The activation function."),
    ] = Activation.relu,
    numbers: Annotated[
        Numbers,
        typer.Option(
            **choosing(Numbers),
            show_default="auto",
            help="Numerical outputs: classes: one logit per value; column: one logit that is the number.",
        ),
    ] = Numbers.auto,
    which: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The output to export, if PROGRAM has several.", show_default=False),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder, whatever it contains.")] = False,
) -> None:
    """Write PROGRAM as a GPT-2 checkpoint.

    The transformers library loads it without tracr. The README.md in the folder explains how to load it. Programs that
    generate text need --causal.

    Example: tracr huggingface induction --causal --max-len 12 -o induction_gpt2
    """
    from tracr.cli.description import in_short
    from tracr.cli.screen import waiting

    choice = GivenOptions(
        vocab, max_len, level, causal, passes=switches(switched_on, switched_off), max_memory=max_memory
    )
    found = find(program, name, choice)
    with waiting(f"compiling {found.name}"):
        model = compiled(found, choice)
        model.save_pretrained(
            output, activation=activation.value, numbers=numbers.value, output=which, overwrite=overwrite
        )
    typer.echo(f"{found.name}: {in_short(model)}")
    typer.echo(f"saved for transformers in {output}; its README.md says how to run it")
