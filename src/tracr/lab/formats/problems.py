"""What is wrong with a file: all problems, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tracr.errors import FormatError, TracrError

__all__ = ["Problems", "refuse"]

MOST = 50  # problems after which reading stops
FIRST = 5  # problems that an error names

Item = TypeVar("Item")


class Problems:
    """Collects problems while a file is read."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """Add a problem; characters that a terminal does not print are replaced."""
        self.texts.append("".join(letter if letter.isprintable() else "?" for letter in text))

    def until_many(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, until there are many problems."""
        for item in items:
            if len(self.texts) >= MOST:
                self.add(f"reading stopped after {MOST} problems")
                return
            yield item

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Turn an error into a problem of this place."""
        try:
            yield
        except TracrError as error:
            what, hint = error.diagnostic.what, error.diagnostic.hint
            self.add(f"{'' if what.startswith(place) else f'{place}: '}{what}{f' ({hint})' if hint else ''}")


def refuse(name: str, problems: Sequence[str]) -> None:
    """Raise an error if there are problems with a file of this name."""
    if problems:
        lines = "".join(f"\n  {text}" for text in problems[:FIRST])
        rest = f"\n  and {len(problems) - FIRST} more" if len(problems) > FIRST else ""
        raise FormatError(f"{name} is not a circuit that can be read:{lines}{rest}", hint="tracr lab check lists all")
