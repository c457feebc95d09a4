"""Compares the structure of two programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

from tracr.rasp.annotations import NAME
from tracr.rasp.expressions import LinearSequenceMap, RASPExpr
from tracr.rasp.functions import Composition, Function
from tracr.rasp.traversal import topological

__all__ = ["functions_of", "same_structure"]

ELSEWHERE = ("children", "origin")  # children are compared separately; the origin does not matter


def same_structure(first: RASPExpr, second: RASPExpr, *, ignore_names: bool = False) -> bool:
    """Whether two programs consist of the same operations with the same functions, constants and annotations.

    Functions are compared with `==`, so two lambdas differ even if they compute the same; constants with their types.
    An expression that one program shares (reads twice), the other must share too.

    >>> from tracr.rasp import rasp
    >>> same_structure(rasp.tokens == "a", (rasp.tokens == "a").named("is_a"), ignore_names=True)
    True
    >>> same_structure(rasp.tokens == 1, rasp.tokens == True)
    False
    """
    return _description(first, ignore_names) == _description(second, ignore_names)


def functions_of(function: Function) -> list[Function]:
    """The functions that a function is composed of, first applied first; mostly only itself."""
    found: list[Function] = []
    stack = [function]
    while stack:
        link = stack.pop()
        if isinstance(link, Composition):
            stack += [link.f, link.inner]
        else:
            found.append(link)
    return found


def _description(program: RASPExpr, ignore_names: bool) -> list[Hashable]:
    """Every expression in traversal order, which depends only on the structure."""
    order = topological([program])
    place = {expr: number for number, expr in enumerate(order)}
    return [
        (
            type(expr),
            tuple(place[child] for child in expr.children),
            _fields(expr),
            _annotations(expr, ignore_names),
        )
        for expr in order
    ]


def _annotations(expr: RASPExpr, ignore_names: bool) -> frozenset[Hashable]:
    explicit = expr.annotations.explicit.items()
    return frozenset((key, _typed(value)) for key, value in explicit if not (ignore_names and key == NAME))


def _fields(expr: RASPExpr) -> tuple[Hashable, ...]:
    """The fields of an expression other than its children."""
    names = [name for cls in type(expr).__mro__ for name in getattr(cls, "__slots__", ())]
    found: list[Hashable] = []
    for name in names:
        value: Any = getattr(expr, name, None)
        if name.startswith("_") or name in ELSEWHERE or isinstance(value, RASPExpr):
            continue
        if name in ("f", "predicate"):
            if not isinstance(expr, LinearSequenceMap):  # its factors determine its function
                found.append(tuple(_typed(part) for part in functions_of(value)))
        else:
            found.append(_typed(value))
    return tuple(found)


def _typed(value: object) -> Hashable:
    """A value or function as a key that differs for equal ones of different types."""
    if isinstance(value, tuple):
        return (type(value), *map(_typed, value))
    if isinstance(value, frozenset):
        return (frozenset, frozenset(map(_typed, value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return (type(value), *(_typed(getattr(value, field.name)) for field in dataclasses.fields(value)))
    if isinstance(value, float):
        return (float, repr(value))  # 0.0 and -0.0 differ
    return (type(value), value)
