"""Boolean combinations of selectors that simplify while they are built.

Over the same keys and queries a combination is one predicate, so one `Select`. A constant key or query
(`Full`) matches any.
"""

from __future__ import annotations

from collections.abc import Callable

from tracr.rasp.expressions import Full, Select, Selector, SelectorAnd, SelectorNot, SelectorOr, SOp
from tracr.rasp.functions import Function
from tracr.rasp.values import Value

__all__ = ["selector_and", "selector_not", "selector_or"]


def selector_and(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """Selected by both; one `Select` where the inputs allow it and `simplify`."""
    merged = _merge(fst, snd, lambda a, b: a and b) if simplify else None
    return SelectorAnd(fst, snd) if merged is None else merged


def selector_or(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """Selected by either; one `Select` where the inputs allow it and `simplify`."""
    merged = _merge(fst, snd, lambda a, b: a or b) if simplify else None
    return SelectorOr(fst, snd) if merged is None else merged


def selector_not(inner: Selector, simplify: bool = True) -> Selector:
    """Selected where `inner` is not; one `Select` where `inner` is one and `simplify`."""
    if simplify and isinstance(inner, Select):
        predicate = inner.predicate
        return Select(inner.keys, inner.queries, lambda key, query: not predicate(key, query))
    return SelectorNot(inner)


def _merge(fst: Selector, snd: Selector, combine: Callable[[bool, bool], bool]) -> Select | None:
    if not (isinstance(fst, Select) and isinstance(snd, Select)):
        return None
    keys, queries = _common(fst.keys, snd.keys), _common(fst.queries, snd.queries)
    if keys is None or queries is None:
        return None
    first, second = _at(fst), _at(snd)
    return Select(keys, queries, lambda key, query: combine(first(key, query), second(key, query)))


def _common(fst: SOp, snd: SOp) -> SOp | None:
    """The s-op that can stand for both: the same one, or the one that is not constant."""
    if fst is snd or isinstance(snd, Full):
        return fst
    return snd if isinstance(fst, Full) else None


def _at(select: Select) -> Function:
    """The predicate with constant keys and queries filled in."""
    predicate, keys, queries = select.predicate, select.keys, select.queries

    def filled(key: Value, query: Value) -> bool:
        return bool(
            predicate(
                keys.fill if isinstance(keys, Full) else key,
                queries.fill if isinstance(queries, Full) else query,
            )
        )

    return filled
