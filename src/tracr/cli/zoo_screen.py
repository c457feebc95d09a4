"""Prints the programs of the zoo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from tracr.cli.screen import Screen, plain_table, short

__all__ = ["show_zoo", "show_zoo_entry"]


def show_zoo(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print programs of the zoo: name, description, layers, heads and tags."""
    table = plain_table("program", "what it computes", "layers", "heads", "tags")
    for row in rows:
        sizes = (str(row["layers"]), str(row["heads"]))
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
    facts.add_row("layers", f"{row['layers']}, up to {row['heads']} heads per layer")
    facts.add_row("tags", " ".join(row["tags"]))
    facts.add_row("input", Text(" ".join(map(short, row["input"]))))
    facts.add_row("output", Text(" ".join(map(short, row["output"]))))
    screen.print(facts)
    screen.print()
    table = plain_table("component", "what it does")
    for name, sentence in row["components"].items():
        table.add_row(Text(name, "cyan"), Text(sentence))
    screen.print(table)
