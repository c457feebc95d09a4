"""Reads untrusted JSON: every step checks what it expects, every error names the place in the document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from tracr.errors import FormatError
from tracr.saving.values_json import decode_value
from tracr.values import Value

__all__ = ["Reader", "parse"]


LARGEST_JSON_NUMBER = 10**300
LONGEST_KEY = 80  # characters of a key that errors show


class Reader:
    """A place in a JSON document; `where` is the path to it."""

    def __init__(self, data: Any, where: str) -> None:
        self.data = data
        self.where = where

    def fail(self, what: str) -> NoReturn:
        """Refuse the document."""
        raise FormatError(f"{self.where} {what}")

    def object(self, keys: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Reader]:
        """An object with exactly these keys; the optional ones may be missing."""
        if not isinstance(self.data, dict):
            self.fail("is not a JSON object")
        expected = set(keys)
        known = expected | set(optional)
        for problem, names in (("lacks", expected - set(self.data)), ("has unknown", set(self.data) - known)):
            if names:
                self.fail(f"{problem} {', '.join(map(repr, sorted(names)[:5]))}")
        return {key: Reader(value, f"{self.where}.{key}") for key, value in self.data.items()}

    def members(self) -> Iterator[tuple[str, Reader]]:
        """The keys and values of an object with any keys."""
        if not isinstance(self.data, dict):
            self.fail("is not a JSON object")
        for key, value in self.data.items():
            yield key, Reader(value, f"{self.where}[{_short(key)}]")

    def items(self, *, count: int | None = None) -> list[Reader]:
        """The elements of a list, exactly `count` of them if given."""
        if not isinstance(self.data, list):
            self.fail("is not a JSON list")
        if count is not None and len(self.data) != count:
            self.fail(f"has {len(self.data)} elements, not {count}")
        return [Reader(value, f"{self.where}[{place}]") for place, value in enumerate(self.data)]

    def value(self) -> Value:
        """A RASP value."""
        try:
            return decode_value(self.data)
        except FormatError as error:
            self.fail(f"is not a value: {error}")

    def values(self) -> tuple[Value, ...]:
        """A list of RASP values."""
        if not isinstance(self.data, list):
            self.fail("is not a JSON list")
        try:
            return tuple(map(decode_value, self.data))
        except FormatError as error:
            self.fail(f"has an element that is not a value: {error}")

    def text(self) -> str:
        """A string."""
        value = self.value()
        if not isinstance(value, str):
            self.fail("is not a string")
        return value

    def choice(self, among: Iterable[str]) -> str:
        """One of a few strings."""
        known = list(among)
        if self.data not in known:
            self.fail(f"is not one of {', '.join(known)}")
        return str(self.data)

    def boolean(self) -> bool:
        """True or false."""
        if not isinstance(self.data, bool):
            self.fail("is not true or false")
        return self.data

    def integer(self, low: int = 0, high: int | None = None) -> int:
        """An integer within bounds."""
        value = self.value() if isinstance(self.data, dict) else self.data
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail("is not an integer")
        if value < low or (high is not None and value > high):
            self.fail(f"is {value if abs(value) < 10**20 else 'too large'}, not between {low} and {high}")
        return value

    def number(self) -> float:
        """A finite number; an integer stays one."""
        if (
            isinstance(self.data, bool)
            or not isinstance(self.data, int | float)
            or not abs(self.data) < LARGEST_JSON_NUMBER
        ):
            self.fail("is not a finite number")
        return self.data


def _short(key: str) -> str:
    text = repr(key)
    return text if len(text) <= LONGEST_KEY else f"{text[:LONGEST_KEY]}..."


def parse(data: bytes, name: str, *, constants: bool = False) -> Reader:
    """Parse a JSON document; repeated keys, NaN, infinities and very deep nesting are refused.

    With `constants`, NaN and infinities are parsed, and refused by `number` with their place.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise FormatError(f"{name} has an object with a key that occurs twice: {_short(twice)}")
        return found

    def no_constant(constant: str) -> NoReturn:
        raise FormatError(f"{name} holds {constant}, which is not JSON")

    try:
        text = data.decode("utf-8")
        known = float if constants else no_constant
        return Reader(json.loads(text, object_pairs_hook=unique, parse_constant=known), name)
    except RecursionError:
        raise FormatError(f"{name} is nested too deep") from None
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"{name} is not JSON: {error}") from None
