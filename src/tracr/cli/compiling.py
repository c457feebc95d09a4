"""The command `compile`: saves a model, or prints its stages, passes, bounds or search."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracr.cli.completion import among
from tracr.cli.options import (
    Causal,
    Dtype,
    Json,
    Level,
    MaxLen,
    MaxMemory,
    Name,
    Program,
    Strict,
    Vocab,
    With,
    Without,
    choosing,
    one_of,
    print_json,
)
from tracr.cli.sources import Found, GivenOptions, compiled, find, switches
from tracr.cli.watching import PassPrinter
from tracr.ir.switches import PassName

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["compile_program"]


class Stage(Enum):
    """The stages of a compilation that can be shown."""

    trace = "trace"
    infer = "infer"
    lower = "lower"
    translate = "translate"  # another name of lower
    schedule = "schedule"
    layout = "layout"
    construct = "construct"  # another name of layout
    assemble = "assemble"


Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Save the model in this folder.", show_default=False)
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the folder even if it contains something other than a model.")
]
Show = Annotated[
    Stage | None,
    typer.Option(
        **choosing(Stage),
        help="Print the result of one stage of the compilation.",
        show_default=False,
    ),
]
Bounds = Annotated[bool, typer.Option("--bounds", help="Print lower bounds of the model's sizes.")]
Solve = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Search for the best schedule with a solver, for this time.", show_default=False
    ),
]
PrintAfter = Annotated[
    list[PassName] | None,
    typer.Option(
        "--print-after",
        parser=one_of(PassName),
        autocompletion=among("tracr.ir.switches", "PassName"),
        metavar="PASS",
        help="Print the program after a pass (`tracr passes`); may be repeated.",
        show_default=False,
    ),
]
PrintChanged = Annotated[bool, typer.Option("--print-changed", help="Print what each pass changed, as a diff.")]
CheckEach = Annotated[
    bool, typer.Option("--check-each", help="Check after every pass that the program still computes the same.")
]
ShowSearch = Annotated[
    bool, typer.Option("--search", help="Print the models that the compiler compared, and its choices.")
]


def compile_program(
    program: Program,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    strict: Strict = None,
    dtype: Dtype = None,
    output: Output = None,
    overwrite: Overwrite = False,
    show: Show = None,
    bounds: Bounds = False,
    solve: Solve = None,
    print_after: PrintAfter = None,
    print_changed: PrintChanged = False,
    check_each: CheckEach = False,
    search: ShowSearch = False,
    as_json: Json = False,
) -> None:
    """Compile PROGRAM, and save the model or print its stages.

    Example: tracr compile reverse --max-len 8 -o reverse_model
    """
    from tracr.cli.screen import waiting

    passes = switches(switched_on, switched_off)
    choice = GivenOptions(vocab, max_len, level, causal, strict, passes, solve, max_memory=max_memory, dtype=dtype)
    found = find(program, name, choice)
    printer = PassPrinter(print_after or (), print_changed)
    if found.model is not None and (printer.asked or print_changed or check_each or search):
        raise typer.BadParameter(f"{found.name} is compiled already: it has no passes to print")
    model = _watched(found, choice, printer, check_each, as_json)
    with waiting(f"compiling {found.name}"):
        data, lines = _asked_for(model, found.name, show, bounds, search)
        if output is not None:
            model.save(output, overwrite=overwrite)
    if as_json:
        _print_data(model, found.name, data, printer, output)
        return
    if check_each:
        lines.append("checked after every pass: the invariants, and the results on a sample of inputs")
    for line in lines:
        typer.echo(line)
    if output is not None:
        typer.echo(f"saved in {output}", err=show is not None)


def _watched(
    found: Found, choice: GivenOptions, printer: PassPrinter, check_each: bool, as_json: bool
) -> DesignedModel:
    """The model; prints the passes asked for, also if one of them fails."""
    from tracr.cli.screen import waiting

    try:
        with waiting(f"compiling {found.name}"):
            return compiled(found, choice, watch=printer, check_each=check_each)
    finally:
        for title, text in () if as_json else printer.report():
            typer.echo(f"== {title}\n{text}\n")


def _asked_for(
    model: DesignedModel, name: str, show: Stage | None, bounds: bool, search: bool
) -> tuple[dict[str, Any], list[str]]:
    """What to print of the model: the data for --json, and the lines."""
    from tracr.cli.description import in_short

    data: dict[str, Any] = {}
    lines = [model.show(show.value) if show else f"{name}: {in_short(model)}"]
    if show:
        data |= {"stage": show.value, "text": lines[0]}
    if search and model.search:
        data["search"] = model.search.as_json()
        lines.append(model.search.show())
    if bounds:
        limits = model.bounds()
        data["bounds"] = limits.as_json()
        lines.append(str(limits))
    return data, lines


def _print_data(
    model: DesignedModel, name: str, data: dict[str, Any], printer: PassPrinter, output: Path | None
) -> None:
    """Print what `--json` prints: the summary of the model, what was asked for, the passes, and the folder."""
    from tracr.cli.description import summary

    passes = [{"title": title, "text": text} for title, text in printer.report()]
    saved = {"saved": str(output)} if output else {}
    print_json({**summary(model, name), **data, **({"passes": passes} if passes else {}), **saved})
