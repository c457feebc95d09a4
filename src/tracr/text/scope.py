"""What a running program holds on to: names in sight, functions, and how much it may still do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tracr.text import syntax
from tracr.text.places import Source

__all__ = ["NOTHING", "STEPS", "VALUES", "Allowance", "Function", "Native", "Scope"]

STEPS = 300_000
VALUES = 64  # of a list, characters of a text or cells of a matrix, which one step reads or writes
NOTHING = object()  # what `out` is before anything was computed


@dataclass
class Allowance:
    """How much a program may still do: a text from a stranger must come to an end."""

    steps: int = STEPS
    depth: int = 0

    def spend(self, steps: int = 1) -> bool:
        """Take steps; false when there are none left."""
        self.steps -= steps
        return self.steps >= 0


@dataclass(eq=False, repr=False)
class Scope:
    """The names set in one place, and the place around it: a name is looked up when it is read, never before."""

    own: dict[str, Any]
    outer: Scope | None = None
    out: Any = NOTHING
    """The last value computed here."""

    def outwards(self) -> Iterator[Scope]:
        """This scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


@dataclass(frozen=True, eq=False, repr=False)
class Function:
    """A function of the program, and where it was defined: it reads the names there when it is called."""

    definition: syntax.Definition
    source: Source
    scope: Scope

    @property
    def name(self) -> str:
        """What it is called."""
        return self.definition.name

    def __repr__(self) -> str:
        return f"the function {self.name}({', '.join(self.definition.parameters)})"


@dataclass(frozen=True, eq=False)
class Native:
    """A function of the library that is one of the compiler's own operations."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[..., Any]
