"""What PROGRAM and TOKENS stand for when PROGRAM is a .rasp file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.errors import InputError, SourceError
from tracr.rasp.values import Value

if TYPE_CHECKING:
    from tracr.rasp.text.module import Module

__all__ = ["is_textual", "module_and_name", "read_input", "usual_vocabulary"]


def is_textual(program: str) -> bool:
    """Whether PROGRAM is `file.rasp` or `file.rasp:name`."""
    path, colon, _ = program.rpartition(":")
    return program.endswith(".rasp") or (bool(colon) and path.endswith(".rasp"))


def module_and_name(
    program: str, name: str | None, vocab: Sequence[Value] | None, max_len: int | None
) -> tuple[Module, str]:
    """The file, read and checked against the vocabulary, and the s-op that is meant: the last one if none is named."""
    from tracr.rasp.text import parse_file

    path, colon, given = program.rpartition(":")
    if not (colon and path.endswith(".rasp")):
        path, given = program, ""
    if given and name:
        raise InputError(f"{program} and --name {name} both name a program", hint="give one of them")
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}")
    module = parse_file(path, vocab=vocab, max_seq_len=max_len)
    chosen = name or given or next(reversed(module.programs), "")
    if not chosen:
        raise InputError(f"{path} defines no s-op", hint="assign one to a name: y = indices + 1;")
    if chosen not in module:
        raise InputError(f"{path} defines no {chosen}", hint=f"its s-ops are {', '.join(module.programs)}")
    return module, chosen


def usual_vocabulary(module: Module, words: Sequence[str]) -> tuple[list[Value] | None, int | None]:
    """Tokens and length where no option says them: those of the file's `set example` and of the input, if any."""
    tokens = [*(module.example or []), *read_input(words, ())]
    longest = max(len(module.example or []), len(read_input(words, ())))
    return list(dict.fromkeys(tokens)) or None, longest or None


def read_input(words: Sequence[str], vocab: Sequence[Value]) -> list[Any]:
    """An input as it is typed: words; one word for its characters; or a JSON list.

    >>> read_input(["abc"], ()), read_input(["the", "cat"], ()), read_input(["[1, 2]"], ())
    (['a', 'b', 'c'], ['the', 'cat'], [1, 2])
    """
    if len(words) != 1 or words[0] in vocab:
        return list(words)
    (word,) = words
    if word.startswith("[") and word.endswith("]"):
        try:
            items = json.loads(word)
        except ValueError:
            return list(word)
        if not all(isinstance(item, int | float | str) for item in items):
            raise SourceError(f"the input {word} holds something else than numbers, strings and booleans")
        return list(items)
    return list(word)
