"""Boolean combinations of selectors, simplified while they are built.

Two `Select`s over the same keys and queries become one `Select` with one predicate. Constant keys or queries
(`Full`) combine with any others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracr.arguments import flag
from tracr.errors import ExpressionError
from tracr.rasp.expressions import Full, Select, Selector, SelectorAnd, SelectorNot, SelectorOr, SOp
from tracr.rasp.functions import OPERATORS, Function, Printed, function_name
from tracr.values import Value

__all__ = ["selector_and", "selector_not", "selector_or"]


def selector_and(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """The keys that both select; one `Select` if the inputs allow it and `simplify` is true."""
    merged = _merge(fst, snd, "both") if flag("simplify", simplify, error=ExpressionError) else None
    return SelectorAnd(fst, snd) if merged is None else merged


def selector_or(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """The keys that at least one selects; one `Select` if the inputs allow it and `simplify` is true."""
    merged = _merge(fst, snd, "either") if flag("simplify", simplify, error=ExpressionError) else None
    return SelectorOr(fst, snd) if merged is None else merged


def selector_not(inner: Selector, simplify: bool = True) -> Selector:
    """The keys that `inner` does not select; one `Select` if `inner` is one and `simplify` is true."""
    if flag("simplify", simplify, error=ExpressionError) and isinstance(inner, Select):
        return Select(inner.keys, inner.queries, Negated(inner.predicate))
    return SelectorNot(inner)


@dataclass(frozen=True)
class Negated(Printed):
    """The negation of a predicate."""

    predicate: Function

    def __call__(self, key: Value, query: Value) -> bool:
        return not self.predicate(key, query)

    def __str__(self) -> str:
        return f"not {function_name(self.predicate)}"


@dataclass(frozen=True)
class Filled(Printed):
    """A predicate with constant keys or queries filled in. Each of them is a tuple, empty if it is not constant."""

    predicate: Function
    keys: tuple[Value, ...]
    queries: tuple[Value, ...]

    def __call__(self, key: Value, query: Value) -> bool:
        return bool(self.predicate(*(self.keys or (key,)), *(self.queries or (query,))))

    def __str__(self) -> str:
        return function_name(self.predicate)


@dataclass(frozen=True)
class Merged(Printed):
    """The conjunction or the disjunction of two predicates."""

    which: Literal["both", "either"]
    first: Filled
    second: Filled

    def __call__(self, key: Value, query: Value) -> bool:
        return bool(OPERATORS[self.which](self.first(key, query), self.second(key, query)))

    def __str__(self) -> str:
        return f"{self.which} of two predicates"


def _merge(fst: Selector, snd: Selector, which: Literal["both", "either"]) -> Select | None:
    if not (isinstance(fst, Select) and isinstance(snd, Select)):
        return None
    keys, queries = _common(fst.keys, snd.keys), _common(fst.queries, snd.queries)
    if keys is None or queries is None:
        return None
    return Select(keys, queries, Merged(which, _filled(fst), _filled(snd)))


def _common(fst: SOp, snd: SOp) -> SOp | None:
    """The s-op that can replace both: the same one, or the one that is not constant."""
    if fst is snd or isinstance(snd, Full):
        return fst
    return snd if isinstance(fst, Full) else None


def _filled(select: Select) -> Filled:
    """The predicate with constant keys and queries filled in."""
    keys, queries = ((side.fill,) if isinstance(side, Full) else () for side in (select.keys, select.queries))
    return Filled(select.predicate, keys, queries)
