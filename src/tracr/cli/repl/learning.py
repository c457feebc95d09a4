"""`:learn`: the puzzles of `tracr.learn`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tracr.cli.repl.words import CommandWords
from tracr.errors import InputError

__all__ = ["learn"]


def learn(words: CommandWords) -> str:
    """List the puzzles, show one, show one of its hints, or check an answer.

    `:learn`, `:learn 3`, `:learn 3 hint 1`, `:learn 3 x`.
    """
    puzzles = _puzzles()
    if not words.text:
        return "\n".join(f"{one.number:>3}. {one.title}  ({one.id}, par {one.par})" for one in puzzles.puzzles())
    number = words.name
    puzzle = puzzles.puzzle(int(number) if number.isdecimal() else number)
    if not words.rest:
        return str(puzzle)
    answer = CommandWords(words.runner, words.rest)
    if answer.name == "hint" and answer.rest:
        return _hint(puzzle, answer.rest)
    verdict = puzzle.check(answer.value)
    solution = f"\n\na worked solution:\n{verdict.solution}" if verdict.solution else ""
    return f"{verdict}{solution}"


def _hint(puzzle: Any, number: str) -> str:
    hints = dict(enumerate(puzzle.hints, 1))
    if not number.isdecimal() or int(number) not in hints:
        raise InputError(f"there is no hint {number}", hint=f"the hints are {', '.join(map(str, hints))}")
    return str(hints[int(number)])


def _puzzles() -> Any:
    """`tracr.learn`, imported when it is first needed."""
    try:
        return import_module("tracr.learn")
    except ModuleNotFoundError as error:
        if error.name != "tracr.learn":
            raise
        raise InputError("this installation has no puzzles", hint="install a version with tracr.learn") from None
