"""Reads PROGRAM and TOKENS when PROGRAM is a .rasp file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.cli.inputs import read_tokens, read_words
from tracr.errors import InputError, SourceError, TracrError
from tracr.spelling import did_you_mean
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.text.module import Module

__all__ = ["Text", "defines", "is_textual", "read_module"]


@dataclass(frozen=True)
class Text:
    """A .rasp file, the chosen name in it, and the input."""

    module: Module
    name: str
    tokens: list[Any]


def is_textual(program: str) -> bool:
    """Whether PROGRAM is `file.rasp` or `file.rasp:name`."""
    path, colon, _ = program.rpartition(":")
    return program.endswith(".rasp") or (bool(colon) and path.endswith(".rasp"))


def defines(program: str, word: str) -> bool:
    """Whether a word is a name that the file `program` defines."""
    from tracr.text.parser import read
    from tracr.text.runner import read_file
    from tracr.text.syntax import Assign

    path = Path(program)
    statements = read(read_file(path)) if path.is_file() else ()
    return any(word in statement.names for statement in statements if isinstance(statement, Assign))


def read_module(
    program: str, name: str | None, words: Sequence[str], vocab: Sequence[Value] | None, max_len: int | None
) -> Text:
    """Read the file for a vocabulary, and find the name given, else the last s-op.

    Without a vocabulary, the tokens are those of the file's `set example` and of the input.
    """
    from tracr.text import parse_file

    path, colon, given = program.rpartition(":")
    if not (colon and path.endswith(".rasp")):
        path, given = program, ""
    if given and name:
        raise InputError(f"{program} and --name {name} both name a program", hint="give one of them")
    if not Path(path).is_file():
        beside = {other.name for other in Path(path).parent.glob("*.rasp")}
        raise InputError(f"there is no file {path}", hint=did_you_mean(Path(path).name, sorted(beside)))
    known = _example(Path(path)) if vocab is None else vocab
    tokens = read_words(words, known) if vocab is None else read_tokens(words, vocab, characters=True)
    if not all(isinstance(token, int | float | str) for token in tokens):
        raise SourceError(
            f"the input {words[0]} contains something other than numbers, strings and booleans",
            hint='write [1, 2] or ["a", "b"]',
        )
    module = parse_file(path, vocab=vocab or tokens or None, max_seq_len=max_len)
    return Text(module, _name(module, path, name or given), tokens)


def _example(path: Path) -> list[Value]:
    """The tokens of the file's `set example`; empty if it has no example, or one that needs the rest of the file."""
    from tracr.text.parser import read
    from tracr.text.runner import Runner, read_file
    from tracr.text.syntax import SetExample

    source, runner = read_file(path), Runner((path.parent,), notify=lambda warning: None)
    try:
        for statement in read(source):
            if isinstance(statement, SetExample):
                runner.step(source, statement)
    except TracrError:  # reading the whole file reports the error
        return []
    return list(runner.settings.sop_example) if runner.settings.chosen else []


def _name(module: Module, path: str, name: str) -> str:
    chosen = name or next(reversed(module.programs), "")
    if not chosen:
        raise InputError(f"{path} defines no s-op", hint="assign one to a name: y = indices + 1;")
    if chosen not in module:
        listed = f"its s-ops are {', '.join(module.programs)}"
        raise InputError(f"{path} defines no {chosen}", hint=did_you_mean(chosen, module, listed))
    return chosen
