"""Reads the bodies of requests: JSON objects with known fields of bounded size."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tracr.playground.replies import RefusedRequest
from tracr.spelling import did_you_mean
from tracr.values import short_repr

__all__ = ["TASKS", "ProgramRequest", "read_body", "read_task"]

DEFAULT_LENGTH = 8
LONGEST = 60  # of an input; a drawing has no more
MOST_TOKENS = 256  # of a vocabulary
LONGEST_TEXT = 60  # of a token or a name
LEVELS = (0, 1, 2)
MOST_DIGITS = 300
KINDS = ("page", "svg", "gpt2", "python")

Token = str | int | float | bool


@dataclass(frozen=True)
class ProgramRequest:
    """A program and how to compile it.

    Attributes:
        source: the .rasp text.
        name: the s-op to compile; "" for the last one.
        vocab: the tokens; `None` for those of the text's `set example`.
        max_len: the length of the longest input; `None` for a default.
        level, causal: options of `tracr.compile`.
        input: the tokens to run it on; `None` for an example.
        kind: the kind of file, for downloads.
    """

    source: str
    name: str = ""
    vocab: tuple[Token, ...] | None = None
    max_len: int | None = None
    level: int = 1
    causal: bool = False
    input: tuple[Token, ...] | None = None
    kind: str = ""

    @staticmethod
    def of(fields: Mapping[str, Any]) -> ProgramRequest:
        """A request from the fields that `read_task` returned; JSON has made lists of its tuples."""
        tuples = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return ProgramRequest(**{**fields, **tuples})


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object in a body.

    >>> read_body(b'{"source": "y = indices;"}')
    {'source': 'y = indices;'}
    """
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_int=_integer)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        deep = isinstance(error, RecursionError)
        why = "it is nested too deeply" if deep else str(error)
        raise RefusedRequest(
            f"the body is not JSON: {why}", status=400, hint='send {"source": "y = indices;"}'
        ) from None
    if not isinstance(found, dict):
        raise RefusedRequest(f"the body must be a JSON object, not {short_repr(found)}", hint='send {"source": "..."}')
    return found


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits):,} digits")
    return int(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _text(name: str, value: Any, most: int | None = LONGEST_TEXT) -> str:
    if not isinstance(value, str):
        raise RefusedRequest(f"{name} must be a text, not {short_repr(value)}", hint=f'send {{"{name}": "..."}}')
    if most is not None and len(value) > most:
        raise RefusedRequest(f"{name} has {len(value):,} characters; at most {most} are allowed", hint="shorten it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RefusedRequest(
            f"{name} is not valid Unicode: it has half of a surrogate pair", hint="send whole characters"
        ) from None
    return value


def _source(name: str, value: Any) -> str:
    return _text(name, value, None)  # the size of the body limits it


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RefusedRequest(f"{name} must be true or false, not {short_repr(value)}", hint=f'send {{"{name}": true}}')
    return value


def _whole(name: str, value: Any, low: int, high: int) -> int:
    whole = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not whole or value != int(value) or not low <= value <= high:
        raise RefusedRequest(
            f"{name} must be an integer from {low} to {high}, not {short_repr(value)}", hint=f'send {{"{name}": {low}}}'
        )
    return int(value)


def _level(name: str, value: Any) -> int:
    return _whole(name, value, LEVELS[0], LEVELS[-1])


def _length(name: str, value: Any) -> int | None:
    return None if value is None else _whole(name, value, 1, LONGEST)


def _token(name: str, value: Any) -> Token:
    """A string or a number."""
    if isinstance(value, str):
        return _text(f"a token of {name}", value)
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise RefusedRequest(
        f"a token of {name} must be a text or a number, not {short_repr(value)}",
        hint='send a list such as ["a", "b"] or [1, 2]',
    )


def _tokens(most: int) -> Callable[[str, Any], tuple[Token, ...] | None]:
    """A reader of a list of tokens, or of a text of one-letter tokens, or null."""

    def read(name: str, value: Any) -> tuple[Token, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list | str):
            raise RefusedRequest(f"{name} must be a list of tokens, not {short_repr(value)}", hint='send ["a", "b"]')
        if not 1 <= len(value) <= most:
            raise RefusedRequest(f"{name} has {len(value):,} tokens; it must have 1 to {most}", hint="use others")
        return tuple(_token(name, token) for token in value)

    return read


def _kind(name: str, value: Any) -> str:
    if value not in KINDS:
        raise RefusedRequest(f"there is no {name} {short_repr(value)}", hint=f"there are {', '.join(KINDS)}")
    return str(value)


def _puzzle(name: str, value: Any) -> str | int:
    """The id or the number of a puzzle."""
    return value if isinstance(value, int) and not isinstance(value, bool) else _text(name, value)


Fields = Mapping[str, Callable[[str, Any], Any]]
PROGRAM: Fields = {
    "source": _source,
    "name": _text,
    "vocab": _tokens(MOST_TOKENS),
    "max_len": _length,
    "level": _level,
    "causal": _flag,
    "input": _tokens(LONGEST),
}
TASKS: Mapping[str, Fields] = {
    "compile": PROGRAM,
    "levels": PROGRAM,
    "format": {"source": _source},
    "download": {"kind": _kind, **PROGRAM},
    "check": {"puzzle": _puzzle, "source": _source, "name": _text},
}
REQUIRED = ("source", "kind", "puzzle")


def read_task(task: str, body: bytes) -> dict[str, Any]:
    """The fields of a request, checked; they are what a worker gets.

    >>> read_task("format", b'{"source": "y=1;"}')
    {'task': 'format', 'source': 'y=1;'}
    """
    fields, given = TASKS[task], read_body(body)
    unknown = next((name for name in given if name not in fields), None)
    if unknown is not None:
        known = f"the fields are {', '.join(fields)}"
        raise RefusedRequest(f"there is no field {short_repr(unknown)}", hint=did_you_mean(unknown, [*fields], known))
    missing = [name for name in fields if name in REQUIRED and name not in given]
    if missing:
        raise RefusedRequest(f"the field {missing[0]} is missing", hint=f"the fields are {', '.join(fields)}")
    return {"task": task, **{name: fields[name](name, value) for name, value in given.items()}}
