"""The state of a running program: names in scope, functions, and the steps left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tracr.text import syntax
from tracr.text.places import Source

__all__ = ["NOTHING", "STEPS", "VALUES", "Allowance", "Function", "Native", "Scope"]

STEPS = 300_000
VALUES = 64  # values of a list, characters of a text or cells of a matrix that one step reads or writes
NOTHING = object()  # the value of `out` before anything is computed


@dataclass
class Allowance:
    """The steps that a program has left: even a text from an untrusted author must end."""

    steps: int = STEPS
    depth: int = 0

    def spend(self, steps: int = 1) -> bool:
        """Take steps; false when there are none left."""
        self.steps -= steps
        return self.steps >= 0


@dataclass(eq=False, repr=False)
class Scope:
    """The names of one scope, and the scope around it. A name is looked up when it is read, never before."""

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
    """A function of the program, and the scope of its definition, whose names it reads when it is called."""

    definition: syntax.Definition
    source: Source
    scope: Scope

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    def __repr__(self) -> str:
        return f"the function {self.name}({', '.join(self.definition.parameters)})"


@dataclass(frozen=True, eq=False)
class Native:
    """A function of the library that is one of the compiler's own operations."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[..., Any]
