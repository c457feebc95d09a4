"""The selectors of a program: tables over codes of keys and queries, and boolean combinations of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["CompositeNode", "Kind", "Selector", "SelectorNode", "Selects", "parts_of"]

Kind = Literal["and", "or", "not"]


@dataclass(frozen=True, eq=False)
class Selects:
    """The fields of every selector; `counts` are the widths that can occur."""

    id: int
    label: str
    source: str
    origin: str
    counts: tuple[int, ...]

    @property
    def always(self) -> bool:
        """Whether every query selects at least one key."""
        return bool(self.counts) and self.counts[0] > 0

    @property
    def at_most_one(self) -> bool:
        """Whether no query selects two keys."""
        return not self.counts or self.counts[-1] <= 1

    @property
    def nbytes(self) -> int:
        """The memory its table takes."""
        return 0


@dataclass(frozen=True, eq=False)
class SelectorNode(Selects):
    """A selector: `table[query code, key code]` is 1, 0 or ERROR."""

    keys: int
    queries: int
    table: NDArray[np.int8]

    @property
    def nbytes(self) -> int:
        """The memory its table takes."""
        return self.table.nbytes

    def renumbered(self, to: Callable[[int], int]) -> SelectorNode:
        """The selector with its s-ops renumbered; itself if no number changes."""
        keys, queries = to(self.keys), to(self.queries)
        return self if (keys, queries) == (self.keys, self.queries) else replace(self, keys=keys, queries=queries)


@dataclass(frozen=True, eq=False)
class CompositeNode(Selects):
    """A boolean combination of selectors over different s-ops; it raises where any of its parts raises."""

    kind: Kind
    parts: tuple[int, ...]

    def renumbered(self, to: Callable[[int], int]) -> CompositeNode:
        """The selector with its parts renumbered; itself if no number changes."""
        parts = tuple(map(to, self.parts))
        return self if parts == self.parts else replace(self, parts=parts)

    def combined(self, sides: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """The selection matrix, from those of its parts."""
        match self.kind:
            case "not":
                return ~sides[0]
            case "and":
                return sides[0] & sides[1]
            case "or":
                return sides[0] | sides[1]


Selector = SelectorNode | CompositeNode


def parts_of(selectors: Mapping[int, Selector], number: int) -> list[Selector]:
    """A selector and all selectors it is made of, each once, parts before their combinations."""
    if isinstance(selectors[number], SelectorNode):
        return [selectors[number]]
    found: dict[int, Selector] = {}
    stack = [number]
    while stack:
        selector = selectors[stack[-1]]
        inner = selector.parts if isinstance(selector, CompositeNode) else ()
        waiting = [part for part in inner if part not in found]
        if waiting:
            stack.extend(waiting)
        else:
            found[stack.pop()] = selector
    return list(found.values())
