"""The arguments and options shared by several commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, TypeVar

import typer

from tracr.cli.completion import among, program_names, sops_of_file
from tracr.errors import TracrError
from tracr.spelling import did_you_mean

__all__ = [
    "TOKENS",
    "Causal",
    "Dtype",
    "Input",
    "Json",
    "Level",
    "MaxLen",
    "MaxMemory",
    "Name",
    "Program",
    "Strict",
    "Tokens",
    "Vocab",
    "With",
    "Without",
    "choosing",
    "numbers",
    "one_of",
    "print_json",
]

PROGRAM_HELP = (
    "A .rasp file, a library program (`tracr list`), zoo:NAME or zoo:NAME@level2 (`tracr zoo`), file.py:name, or the "
    "folder of a saved model."
)
TOKENS_HELP = (
    "The input, one word per token: 3 1 2. A single word can also be tokens separated by commas (3,1,2), a JSON list, "
    'or for a .rasp program a string of characters: hello. "" is the empty input.'
)
SWITCHES = among("tracr.ir.switches", "PASSES", "OPTIONS")
TOKENS = {"ignore_unknown_options": True}  # allows -1 as a token; read_tokens refuses unknown tokens

Choices = TypeVar("Choices", bound=Enum)


def one_of(choices: type[Choices]) -> Callable[[Any], Choices]:
    """A parser that reads the name of a choice."""

    def read(text: Any) -> Choices:
        try:
            return choices(text)
        except ValueError:
            names = [str(choice.value) for choice in choices]
            meant = did_you_mean(str(text), names, f"there are {', '.join(names)}")
            raise typer.BadParameter(f"there is no {text}; {meant}") from None

    return read


def choosing(choices: type[Enum]) -> dict[str, Any]:
    """The settings of an option whose value is one of the choices."""
    names = [str(choice.value) for choice in choices]
    return {"parser": one_of(choices), "metavar": "|".join(names), "autocompletion": lambda: names}


def _no_options(context: typer.Context, words: list[str] | None) -> list[str] | None:
    """Refuse a misspelt option, which the parser took for a token because tokens can begin with a dash."""
    options = [option for parameter in context.command.params for option in parameter.opts if option[:2] == "--"]
    for word in words or ():
        meant = did_you_mean(word.partition("=")[0], options) if word.startswith("--") else ""
        if meant:
            raise typer.BadParameter(f"there is no option {word}; {meant} (a token is written in JSON: '[\"{word}\"]')")
    return words


def _level(value: int | None) -> int | None:
    from tracr.ir.options import LEVELS

    if value is not None and value not in LEVELS:
        raise typer.BadParameter(f"{value} is not one of {', '.join(map(str, LEVELS))}")
    return value


def _memory(size: str | None) -> str | None:
    from tracr.ir.budget import as_bytes

    try:
        if size is not None:
            as_bytes(size)
    except TracrError:
        raise typer.BadParameter(f"{size} is not a size; write 500MB, 2GB or a number of bytes") from None
    return size


def _dtype(name: str | None) -> str | None:
    from tracr.craft.formats import STORED

    if name is not None and name not in STORED:
        meant = did_you_mean(name, list(STORED), f"there are {', '.join(STORED)}")
        raise typer.BadParameter(f"there is no format {name}; {meant}")
    return name


def _passes(names: list[str] | None) -> list[str] | None:
    from tracr.ir.switches import OPTIONS, PASSES, PassName

    known = [*PASSES, *OPTIONS]
    for name in names or ():
        if name in known:
            continue
        if name in list(PassName):
            raise typer.BadParameter(f"the pass {name} has no switch; there are {', '.join(known)} (`tracr passes`)")
        meant = did_you_mean(name, known, f"there are {', '.join(known)}")
        raise typer.BadParameter(f"there is no pass {name}; {meant} (`tracr passes`)")
    return names


Program = Annotated[
    str,
    typer.Argument(metavar="PROGRAM", help=PROGRAM_HELP, autocompletion=program_names, show_default=False),
]
Tokens = Annotated[
    list[str] | None,
    typer.Argument(metavar="TOKENS", help=TOKENS_HELP, callback=_no_options, show_default=False),
]
Input = Annotated[
    str | None,
    typer.Option(
        "--input", metavar="TOKENS", help="The input as one word: 3,1,2, hello or a JSON list.", show_default=False
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=sops_of_file,
        help="The s-op of a .rasp file; by default the last one.",
        show_default=False,
    ),
]
Vocab = Annotated[
    str | None,
    typer.Option(
        metavar="TOKENS",
        help="The vocabulary: characters (abc), tokens separated by commas (1,2,x) or a JSON list.",
        show_default=False,
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        callback=_dtype,
        autocompletion=among("tracr.craft.formats", "STORED"),
        metavar="FORMAT",
        help="The number format of weights and activations: float32 (the default), bfloat16 or float16.",
        show_default=False,
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        callback=_memory,
        metavar="SIZE",
        help="The most memory for compiling: 500MB, 2GB (the default) or a number of bytes.",
        show_default=False,
    ),
]
MaxLen = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="The longest input, in tokens.", show_default=False),
]
Level = Annotated[
    int | None,
    typer.Option(
        callback=_level,
        autocompletion=among("tracr.ir.options", "LEVELS"),
        metavar="N",
        help="The optimisation level. 0: the paper's structure; 1: optimised (the default); 2: smallest.",
        show_default=False,
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        callback=_passes,
        autocompletion=SWITCHES,
        metavar="PASS",
        help="Switch a pass or an option on (`tracr passes`); may be repeated.",
        show_default=False,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        callback=_passes,
        autocompletion=SWITCHES,
        metavar="PASS",
        help="Switch a pass or an option off; may be repeated.",
        show_default=False,
    ),
]
Causal = Annotated[
    bool | None, typer.Option("--causal", help="Causal attention: positions attend to earlier ones and themselves.")
]
Strict = Annotated[bool | None, typer.Option("--strict", help="Turn warnings into errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(data: object) -> None:
    """Print data as JSON, for `--json`."""
    typer.echo(json.dumps(data, indent=2))


def numbers(text: str, option: str) -> list[int]:
    """Read a list of numbers and ranges such as 4,6,8-10."""
    found: list[int] = []
    try:
        for piece in text.split(","):
            first, dash, last = piece.strip().partition("-")
            found += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of numbers such as 4,6,8-10", param_hint=option) from None
    return list(dict.fromkeys(found))
