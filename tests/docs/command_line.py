"""Command lines of `tracr`, read as it reads them."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer

from tracr.cli import app

__all__ = ["parse"]


@cache
def whole_command() -> Any:
    """The command `tracr` with all its commands."""
    return typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Read a command line as `tracr` does, and run nothing."""
    command = whole_command()
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(command.name, list(words))
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    wrong = [word for word in words if word.startswith("--") and word.partition("=")[0] not in {*options, "--help"}]
    assert not wrong, wrong  # commands whose input may begin with a dash parse them
