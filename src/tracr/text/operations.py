"""The functions that constructs of the language apply at one position. They can print themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracr.rasp.functions import Printed
from tracr.values import Value

__all__ = ["Choice", "ChoiceElse", "ChoiceThen", "DictionaryLookup", "Item", "Kept", "Member", "Otherwise"]


@dataclass(frozen=True)
class Choice(Printed):
    """One of two constants, by a condition."""

    then: Value
    otherwise: Value

    def __call__(self, condition: Value) -> Value:
        return self.then if condition else self.otherwise

    def __str__(self) -> str:
        return f"{self.then!r} if x else {self.otherwise!r}"


@dataclass(frozen=True)
class ChoiceThen(Printed):
    """A value where the condition holds, else a constant."""

    otherwise: Value

    def __call__(self, condition: Value, then: Value) -> Value:
        return then if condition else self.otherwise

    def __str__(self) -> str:
        return f"y if x else {self.otherwise!r}"


@dataclass(frozen=True)
class ChoiceElse(Printed):
    """A constant where the condition holds, else a value."""

    then: Value

    def __call__(self, condition: Value, otherwise: Value) -> Value:
        return self.then if condition else otherwise

    def __str__(self) -> str:
        return f"{self.then!r} if x else y"


@dataclass(frozen=True)
class Kept(Printed):
    """The first half of a choice between two s-ops: the value in a tuple, empty where the condition fails."""

    def __call__(self, condition: Value, then: Value) -> tuple[Value, ...]:
        return (then,) if condition else ()

    def __str__(self) -> str:
        return "(y if x)"


@dataclass(frozen=True)
class Otherwise(Printed):
    """The second half: what was kept, else the other value."""

    def __call__(self, kept: tuple[Value, ...], otherwise: Value) -> Value:
        return kept[0] if kept else otherwise

    def __str__(self) -> str:
        return "x else y"


@dataclass(frozen=True)
class DictionaryLookup(Printed):
    """The value looked up in a dictionary."""

    entries: tuple[tuple[Value, Value], ...]

    @cached_property
    def table(self) -> dict[Value, Value]:
        """The entries as a dictionary."""
        return dict(self.entries)

    def __call__(self, key: Value) -> Value:
        if key not in self.table:
            raise LookupError(f"the dictionary has no key {key!r}")
        return self.table[key]

    def __str__(self) -> str:
        return "{" + _few([f"{key!r}: {value!r}" for key, value in self.entries]) + "}[x]"


@dataclass(frozen=True)
class Item(Printed):
    """A list, or the characters of a string, indexed by the value."""

    items: tuple[Value, ...]

    def __call__(self, index: Any) -> Value:
        if not isinstance(index, int):
            raise TypeError(f"the index {index!r} is not an integer")
        if not -len(self.items) <= index < len(self.items):
            raise IndexError(f"the index {index} is out of range for {len(self.items)} items")
        return self.items[index]

    def __str__(self) -> str:
        return "[" + _few(list(map(repr, self.items))) + "][x]"


@dataclass(frozen=True)
class Member(Printed):
    """Whether the value is one of a list."""

    items: tuple[Value, ...]

    def __call__(self, value: Value) -> bool:
        return value in self.items

    def __str__(self) -> str:
        return "x in [" + _few(list(map(repr, self.items))) + "]"


def _few(texts: list[str]) -> str:
    return ", ".join(texts[:6]) + (", ..." if len(texts) > 6 else "")
