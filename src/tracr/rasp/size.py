"""How large a program is: how many s-ops and selectors it has, and how deep they are nested."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.rasp.expressions import Full, Indices, Length, RASPExpr, Select, Selector, Tokens
from tracr.rasp.traversal import topological

__all__ = ["ProgramSize", "size_of"]

FREE = (Tokens, Indices, Length, Full)  # inputs and constants are there without being computed


@dataclass(frozen=True)
class ProgramSize:
    """The measures of a program.

    `ops` counts s-ops, inputs and constants left out; `depth` is the longest chain of them, each reading the one
    before, be it through a selector; `selectors` counts `Select`s, combinations of them left out.
    """

    ops: int
    depth: int
    selectors: int


def size_of(program: RASPExpr) -> ProgramSize:
    """What a program consists of; an expression that is read twice counts once.

    >>> from tracr.rasp import rasp
    >>> hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ))
    >>> size_of(hist == rasp.length)
    Size(ops=2, depth=2, selectors=1)
    """
    depth: dict[RASPExpr, int] = {}
    ops = selectors = 0
    for expr in topological([program]):
        counts = not isinstance(expr, (Selector, *FREE))
        depth[expr] = max((depth[child] for child in expr.children), default=0) + counts
        ops += counts
        selectors += isinstance(expr, Select)
    return ProgramSize(ops, depth[program], selectors)
