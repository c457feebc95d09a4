"""Prints the programs of the zoo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from tracr.cli.screen import Screen, plain_table, short

__all__ = ["show_zoo", "show_zoo_entry"]


def show_zoo(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print programs of the zoo: name, description, difficulty, layers, heads and tags."""
    table = plain_table("program", "what it computes", "difficulty", "layers", "heads", "tags")
    for row in rows:
        sizes = (row["difficulty"], str(row["layers"]), str(row["heads"]))
        table.add_row(Text(row["name"], "cyan"), Text(row["description"]), *sizes, " ".join(row["tags"]))
    Screen().print(table)


def show_zoo_entry(row: Mapping[str, Any]) -> None:
    """Print one program of the zoo, with its example and what its components do."""
    screen = Screen()
    screen.print(Text.assemble((row["name"], "bold"), f": {row['description']}"))
    facts = plain_table("", "")
    facts.show_header = False
    facts.add_row("tokens", Text(" ".join(map(short, row["vocab"]))))
    facts.add_row("length", f"up to {row['max_len']}")
    if row["right_for"]:
        facts.add_row("only for", Text(row["right_for"]))
    facts.add_row("attention", "causal" if row["causal"] else "bidirectional")
    facts.add_row("layers", f"{row['layers']}, {_heads(row['heads'])}")
    facts.add_row("difficulty", f"{row['difficulty']} (heads and MLPs: {row['component_count']})")
    facts.add_row("certified", _certified(row["certified_levels"]))
    facts.add_row("twins", _twins(row["twins"]))
    facts.add_row("tags", " ".join(row["tags"]))
    if row["other_names"]:
        facts.add_row("also called", ", ".join(row["other_names"]))
    facts.add_row("input", Text(" ".join(map(short, row["input"]))))
    facts.add_row("output", Text(" ".join(map(short, row["output"]))))
    screen.print(facts)
    screen.print()
    table = plain_table("component", "what it does", "role")
    for name, sentence in row["components"].items():
        table.add_row(Text(name, "cyan"), Text(sentence), Text(", ".join(row["roles"][name])))
    screen.print(table)


def _heads(most: int) -> str:
    """The most heads in one layer, in words."""
    if most == 0:
        return "no heads"
    return f"up to {most} head{'s' if most > 1 else ''} per layer"


def _certified(levels: Sequence[int]) -> str:
    """The levels at which the checker accepted the model, in words."""
    return f"at level {', '.join(map(str, levels))}, in float32" if levels else "at no level"


def _twins(twins: Mapping[str, int] | None) -> str:
    """How many twins were admitted, in words."""
    if twins is None:
        return "none trained"
    return f"{twins['admitted']} of {twins['trained']} admitted ({twins['tokens']} tokens, length {twins['length']})"
