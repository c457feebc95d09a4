"""Expressions that move values between positions: selectors, their combinations, and the s-ops that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracr.errors import ExpressionError
from tracr.rasp.base import RASPExpr, checked, checked_function, items
from tracr.rasp.elementwise import Full, SOp
from tracr.rasp.functions import Function, function_name
from tracr.values import Value, as_value, short_repr

__all__ = [
    "Aggregate",
    "ConstantSelector",
    "Select",
    "Selector",
    "SelectorAnd",
    "SelectorNot",
    "SelectorOr",
    "SelectorWidth",
]


class Selector(RASPExpr):
    """For every query position, the set of key positions it looks at."""

    __slots__ = ()
    __hash__ = object.__hash__
    a_kind = "a selector"
    how_to_make_one = "build one with rasp.Select(keys, queries, predicate)"
    how_to_turn_into_one = "rasp.Select(keys, queries, predicate) turns s-ops into a selector"

    def __bool__(self) -> bool:
        raise ExpressionError(f"{self!r} has no truth value", hint="combine selectors with & | ~")

    def __and__(self, other: Selector) -> Selector:
        return SelectorAnd(self, other)

    def __or__(self, other: Selector) -> Selector:
        return SelectorOr(self, other)

    def __invert__(self) -> Selector:
        return SelectorNot(self)


def _as_sop(value: object, role: str) -> SOp:
    """Keys or queries as an s-op; a plain constant means `Full(value)`."""
    if value is None or isinstance(value, str | bytes | int | float | tuple | frozenset | np.generic):
        return Full(value)
    sop: SOp = checked(value, SOp, role, "Select")
    return sop


class Select(Selector):
    """Position `key` is selected by `query` if `predicate(keys[key], queries[query])`.

    >>> from tracr.rasp.rasp import indices
    >>> Select(indices, indices, lambda key, query: key < query)("ab")
    [[False, False], [True, False]]
    """

    __slots__ = ("keys", "predicate", "queries")
    default_name = "select"
    keys: SOp
    queries: SOp
    predicate: Function

    def __init__(self, keys: SOp | Value, queries: SOp | Value, predicate: Callable[[Any, Any], Any]) -> None:
        keys, queries = _as_sop(keys, "the keys"), _as_sop(queries, "the queries")
        self._set(keys, queries, keys=keys, queries=queries, predicate=checked_function(predicate, "Select"))

    def _details(self) -> list[str]:
        return [function_name(self.predicate)]


def _cell(value: Any) -> bool:
    try:
        return bool(value)
    except Exception as error:
        raise ExpressionError(
            f"a cell of ConstantSelector is {short_repr(value)}, which is neither true nor false: {error}",
            hint="give booleans",
        ) from None


class ConstantSelector(Selector):
    """A fixed matrix, row = query and column = key, for inputs of exactly its size.

    With `check_length=False` a shorter input uses the top left part of the matrix, and positions of a longer input
    beyond the matrix select nothing and are not selected. Models take inputs up to the size of the matrix.
    """

    __slots__ = ("check_length", "value")
    default_name = "constant_selector"
    value: tuple[tuple[bool, ...], ...]
    check_length: bool

    def __init__(self, value: Sequence[Sequence[bool]], check_length: bool = True) -> None:
        owner = "ConstantSelector"
        rows = tuple(tuple(_cell(cell) for cell in items(row, owner)) for row in items(value, owner))
        if any(len(row) != len(rows) for row in rows):
            raise ExpressionError(
                f"ConstantSelector needs a square matrix, got rows of {short_repr([len(row) for row in rows])}",
                hint="give one row of booleans for every query, each with one entry for every row",
            )
        self._set(value=rows, check_length=check_length)

    def _details(self) -> list[str]:
        return [f"{len(self.value)}x{len(self.value)}"]


class _BinarySelector(Selector):
    __slots__ = ("fst", "snd")
    fst: Selector
    snd: Selector

    def __init__(self, fst: Selector, snd: Selector) -> None:
        fst = checked(fst, Selector, "the first operand", type(self).__name__)
        snd = checked(snd, Selector, "the second operand", type(self).__name__)
        self._set(fst, snd, fst=fst, snd=snd)


class SelectorAnd(_BinarySelector):
    """The keys that both selectors select."""

    __slots__ = ()
    default_name = "selector_and"


class SelectorOr(_BinarySelector):
    """The keys that at least one of the selectors selects."""

    __slots__ = ()
    default_name = "selector_or"


class SelectorNot(Selector):
    """The keys that `inner` does not select."""

    __slots__ = ("inner",)
    default_name = "selector_not"
    inner: Selector

    def __init__(self, inner: Selector) -> None:
        inner = checked(inner, Selector, "the operand", "SelectorNot")
        self._set(inner, inner=inner)


class Aggregate(SOp):
    """The selected value; the mean of several selected numbers; `default` where nothing is selected.

    >>> from tracr.rasp.rasp import indices
    >>> Aggregate(Select(indices, indices, lambda key, query: key < query), indices)("abc")
    [None, 0, 0.5]
    """

    __slots__ = ("default", "selector", "sop")
    default_name = "aggregate"
    selector: Selector
    sop: SOp
    default: Value

    def __init__(self, selector: Selector, sop: SOp, default: Value = None) -> None:
        selector = checked(selector, Selector, "the selector", "Aggregate")
        sop = checked(sop, SOp, "the s-op", "Aggregate")
        default = as_value(default, where="the default of Aggregate")
        self._set(selector, sop, selector=selector, sop=sop, default=default)

    def _details(self) -> list[str]:
        return [] if self.default is None else [f"default={self.default!r}"]


class SelectorWidth(SOp):
    """How many positions each query selects.

    >>> from tracr.rasp.rasp import tokens
    >>> SelectorWidth(Select(tokens, tokens, lambda key, query: key == query))("aab")
    [2, 2, 1]
    """

    __slots__ = ("selector",)
    default_name = "selector_width"
    selector: Selector

    def __init__(self, selector: Selector) -> None:
        selector = checked(selector, Selector, "the selector", "SelectorWidth")
        self._set(selector, selector=selector)
