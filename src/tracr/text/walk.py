"""Visits the parts of a statement, without recursion."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tracr.text import syntax

__all__ = ["assigned", "inside"]


def assigned(loop: syntax.Loop) -> list[str]:
    """The names that the body of a loop sets."""
    names: dict[str, None] = {}
    stack: list[syntax.Statement] = list(loop.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, syntax.Assign):
            names.update(dict.fromkeys(statement.names))
        elif isinstance(statement, syntax.Loop):
            stack.extend(statement.body)
    return list(names)


def inside(statement: syntax.Statement) -> Iterator[syntax.Node]:
    """Every expression in a statement, in order, including those in the body of a function or a loop."""
    stack: list[Any] = [statement]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        elif dataclasses.is_dataclass(item):
            if isinstance(item, syntax.Node):
                yield item
            stack.extend(getattr(item, field.name) for field in reversed(dataclasses.fields(item)))
