"""What a running program holds on to: names in sight, functions, and how much it may still do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracr.rasp.text import syntax
from tracr.rasp.text.places import Source

__all__ = ["STEPS", "Budget", "Function", "Native", "Scope"]

STEPS = 300_000


@dataclass
class Budget:
    """How much a program may still do: a text from a stranger must come to an end."""

    steps: int = STEPS
    depth: int = 0

    def spend(self, steps: int = 1) -> bool:
        """Take steps; false when there are none left."""
        self.steps -= steps
        return self.steps >= 0


@dataclass
class Scope:
    """The names in sight: those set here, and those of where the function was defined."""

    own: dict[str, Any]
    outer: Mapping[str, Any] = field(default_factory=dict)
    top: bool = True


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the program, with the names it saw where it was defined."""

    definition: syntax.Definition
    source: Source
    seen: dict[str, Any]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.definition.name


@dataclass(frozen=True, eq=False)
class Native:
    """A function of the library that is one of the compiler's own operations."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[..., Any]
