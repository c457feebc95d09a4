"""The size of a program: the number of its s-ops and selectors, and how deeply they are nested."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.rasp.expressions import Full, Indices, Length, RASPExpr, Select, Selector, Tokens
from tracr.rasp.traversal import topological

__all__ = ["ProgramSize", "size_of"]

FREE = (Tokens, Indices, Length, Full)  # inputs and constants need no computation


@dataclass(frozen=True)
class ProgramSize:
    """The measures of a program.

    `ops` counts s-ops other than inputs and constants. `depth` is the length of the longest chain of these s-ops, each
    reading the one before, directly or through a selector. `selectors` counts `Select`s, not their combinations.
    """

    ops: int
    depth: int
    selectors: int


def size_of(program: RASPExpr) -> ProgramSize:
    """The size of a program; an expression that is read twice counts once.

    >>> from tracr.rasp import rasp
    >>> hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ))
    >>> size_of(hist == rasp.length)
    ProgramSize(ops=2, depth=2, selectors=1)
    """
    depth: dict[RASPExpr, int] = {}
    ops = selectors = 0
    for expr in topological([program]):
        counts = not isinstance(expr, (Selector, *FREE))
        depth[expr] = max((depth[child] for child in expr.children), default=0) + counts
        ops += counts
        selectors += isinstance(expr, Select)
    return ProgramSize(ops, depth[program], selectors)
