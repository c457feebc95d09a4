"""`tracr zoo`: lists the programs of the zoo, or shows one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracr.cli.completion import among, zoo_tags
from tracr.cli.options import Json

if TYPE_CHECKING:
    from tracr.zoo import Entry

__all__ = ["list_zoo"]


def list_zoo(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=among("tracr.zoo", "ENTRIES"), help="Show this program.", show_default=False
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(metavar="TAG", autocompletion=zoo_tags, help="Only programs with this tag.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the programs of the zoo, or show one with an example and what its components do.

    Layers are those of the model at level 1, and heads the most in one layer. The other commands take a program of the
    zoo as zoo:NAME.

    Example: tracr zoo --tag classic
    """
    from tracr import zoo
    from tracr.cli.screen import waiting
    from tracr.cli.zoo_screen import show_zoo, show_zoo_entry

    if name is not None and tag is not None:
        raise typer.BadParameter("give a name or --tag, not both")
    with waiting("compiling"):
        one = None if name is None else _shown(zoo.get(name))
        several = [] if one else [_described(entry) for entry in zoo.entries(tag)]
    if as_json:
        typer.echo(json.dumps(one or several, indent=1, ensure_ascii=False))
    elif one:
        show_zoo_entry(one)
    else:
        show_zoo(several)


def _described(entry: Entry) -> dict[str, Any]:
    from tracr.cli.description import as_json, sizes

    size = sizes(entry.load())
    return {
        "name": entry.name,
        "description": entry.description,
        "layers": size["layers"],
        "heads": size["heads"],
        "causal": entry.causal,
        "vocab": [as_json(token) for token in entry.vocab],
        "max_len": entry.max_seq_len,
        "tags": list(entry.tags),
    }


def _shown(entry: Entry) -> dict[str, Any]:
    from tracr.cli.description import as_json
    from tracr.lab import roles_of

    model = entry.load()
    return {
        **_described(entry),
        "right_for": entry.example.right_for,
        "input": [as_json(token) for token in entry.shown],
        "output": [as_json(value) for value in model(entry.shown)],
        "components": {one.component: one.sentence for one in roles_of(model).values()},
    }
