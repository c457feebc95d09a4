"""`tracr zoo`: lists the programs of the zoo, or shows one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracr.cli.completion import among, zoo_tags
from tracr.cli.options import Json
from tracr.cli.sources import ZOO

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

    Layers and heads (the most in one layer) are those of the model at level 1. Easy programs have up to 2 layers and 3
    components (heads and MLPs), medium ones up to 4 and 6; the others are hard. The other commands take a program of
    the zoo as zoo:NAME or zoo:NAME@level2.

    Example: tracr zoo --tag classic
    """
    from tracr import zoo
    from tracr.cli.screen import waiting
    from tracr.cli.zoo_screen import show_zoo, show_zoo_entry

    if name is not None and tag is not None:
        raise typer.BadParameter("give a name or --tag, not both")
    several = [] if name else [_described(entry) for entry in zoo.entries(tag)]
    with waiting("compiling"):
        one = None if name is None else _shown(zoo.get(name.removeprefix(ZOO)))
    if as_json:
        typer.echo(json.dumps(one or several, indent=1, ensure_ascii=False))
    elif one:
        show_zoo_entry(one)
    else:
        show_zoo(several)


def _described(entry: Entry) -> dict[str, Any]:
    from tracr import zoo
    from tracr.cli.description import as_json
    from tracr.zoo.aliases import other_names

    facts = zoo.facts(entry.name)
    return {
        "name": entry.name,
        "description": entry.description,
        "layers": facts.layers,
        "heads": facts.heads,
        "component_count": facts.components,
        "difficulty": facts.difficulty,
        "causal": entry.causal,
        "vocab": [as_json(token) for token in entry.vocab],
        "max_len": entry.max_seq_len,
        "tags": list(entry.tags),
        "other_names": other_names(entry.name),
        "certified_levels": list(facts.certified),
        "twins": None if facts.twins is None else vars(facts.twins),
    }


def _shown(entry: Entry) -> dict[str, Any]:
    from tracr.cli.description import as_json
    from tracr.lab import roles_of

    model = entry.load()
    roles = roles_of(model)
    return {
        **_described(entry),
        "right_for": entry.example.right_for,
        "input": [as_json(token) for token in entry.shown],
        "output": [as_json(value) for value in model(entry.shown)],
        "components": {one.component: one.sentence for one in roles.values()},
        "roles": {one.component: list(one.roles) for one in roles.values()},
    }
