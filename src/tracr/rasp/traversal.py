"""Visiting every sub-expression once, children first, without recursion."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tracr.rasp.expressions import RASPExpr

__all__ = ["topological"]


def topological(roots: Iterable[RASPExpr], known: Collection[RASPExpr] = ()) -> list[RASPExpr]:
    """Every expression the roots are built from, once each, children before parents, left to right.

    Leaves out the `known` expressions, and those that only `known` ones are built from.

    >>> from tracr.rasp import rasp
    >>> [expr.name for expr in topological([rasp.tokens == rasp.indices])]
    ['tokens', 'indices', 'sequence_map']
    """
    order: list[RASPExpr] = []
    seen: set[RASPExpr] = set()
    for root in roots:
        stack: list[tuple[RASPExpr, bool]] = [(root, False)]
        while stack:
            expr, expanded = stack.pop()
            if expanded:
                order.append(expr)
            elif expr not in seen and expr not in known:
                seen.add(expr)
                stack.append((expr, True))
                stack += [(child, False) for child in expr.children[::-1] if child not in seen and child not in known]
    return order
