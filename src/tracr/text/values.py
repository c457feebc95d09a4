"""The values of the textual language and how large they may grow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from tracr.rasp.attention import Selector
from tracr.rasp.elementwise import SOp
from tracr.values import LARGEST_VALUE, LONGEST_STRING

__all__ = [
    "Entries",
    "Items",
    "Misfit",
    "Result",
    "checked",
    "describe",
    "is_atom",
    "kind_of",
    "literal",
    "printed",
    "size_of",
]

Atom = int | float | str | bool
HEAVIEST = 100_000  # values in a list or dictionary, those of lists inside it included


class Misfit(Exception):
    """Values that an operation cannot take; the evaluator adds the place and raises a `SourceError`."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


class Items(list[Any]):
    """A list that knows how many values it holds, lists inside it included."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.weight = _weighed(self)


class Entries(dict[Any, Any]):
    """A dictionary that knows how many values it holds."""

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        super().__init__(entries)
        self.weight = _weighed(self.values())


class Result(Items):
    """The result of an expression on an input."""

    def __init__(self, expr: SOp | Selector, given: Sequence[Any], result: Sequence[Any]) -> None:
        super().__init__(result)
        self.expr, self.given = expr, given


def _weighed(values: Iterable[Any]) -> int:
    weight = sum(getattr(value, "weight", 1) for value in values) + 1
    if weight - 1 > HEAVIEST:
        raise Misfit(f"a list of more than {HEAVIEST:,} values is too large")
    return weight


def size_of(value: object) -> int:
    """How many values a list or a dictionary holds, or characters a text; 1 for all others."""
    return len(value) if isinstance(value, str) else getattr(value, "weight", 1)


def is_atom(value: object) -> TypeGuard[Atom]:
    """Whether a value is a number, a string or a boolean."""
    return isinstance(value, int | float | str)


def checked(value: Any) -> Any:
    """A result of Python's operators as a value of the language."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Misfit(f"the result is {value}, which is not a number to compute with")
    if isinstance(value, int) and abs(value) > LARGEST_VALUE:
        raise Misfit("the result is an integer too large to compute with")
    if isinstance(value, str) and len(value) > LONGEST_STRING:
        raise Misfit(f"the result is a text of more than {LONGEST_STRING:,} characters")
    if isinstance(value, list) and not isinstance(value, Items):
        return Items(value)
    return value


def literal(value: Any) -> str:
    """The text of a value in the language; an expression is written by its name.

    >>> literal(["a", True, 0.5])
    '["a", True, 0.5]'
    """
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return value.name if hasattr(value, "name") else repr(value)


def describe(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, SOp):
        return f"the s-op {value.name}"
    if isinstance(value, Selector):
        return f"the selector {value.name}"
    if is_atom(value):
        text = literal(value)
        return text if len(text) <= 40 else f"{text[:37]}..."
    if isinstance(value, list):
        return f"a list of {len(value)}" if len(value) > 4 else f"the list {literal(value)}"
    if isinstance(value, dict):
        return f"a dictionary of {len(value)}" if len(value) > 4 else f"the dictionary {literal(value)}"
    return f"the function {value.name}"


def kind_of(values: Sequence[Any]) -> str:
    """The type of a sequence: string, float, int or bool.

    >>> kind_of([True, 1]), kind_of([1, 0.5])
    ('int', 'float')
    """
    kinds = {type(value) for value in values}
    return next((kind.__name__ for kind in (float, int, bool) if kind in kinds and str not in kinds), "string")


def printed(values: Sequence[Any]) -> str:
    """A sequence as the running examples show it.

    >>> printed([1, 1 / 3, 2]), printed([True, True]), printed("ab")
    ('[1, 0.333, 2] (floats)', '[T]*2 (bools)', '[a, b] (strings)')
    """
    texts = [shown(value) for value in values]
    same = len(values) > 1 and all(value == values[0] for value in values)
    return (f"[{texts[0]}]*{len(texts)}" if same else f"[{', '.join(texts)}]") + f" ({kind_of(values)}s)"


def shown(value: Any) -> str:
    """One value as the running examples show it."""
    if isinstance(value, bool):
        return "T" if value else "F"
    return str(round(value, 3)) if isinstance(value, float) else str(value)
