"""The size of a program: the number of its s-ops and selectors, and how deeply they are nested."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.rasp.expressions import Full, Indices, Length, RASPExpr, Select, Selector, Tokens
from tracr.rasp.traversal import topological

__all__ = ["ProgramSize", "SharedSizes", "size_of"]

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


class SharedSizes:
    """The sizes of small programs that share expressions; each expression is looked at once.

    >>> from tracr.rasp import rasp
    >>> sizes = SharedSizes()
    >>> all(sizes.of(program) == size_of(program) for program in (rasp.tokens == "a", rasp.length + 1))
    True
    """

    def __init__(self) -> None:
        self._parts: dict[RASPExpr, tuple[int, int]] = {}  # the expressions it is built from, as bits; its depth
        self._ops = self._selectors = 0  # the bits of those that count
        self._sizes: dict[RASPExpr, ProgramSize] = {}

    def of(self, program: RASPExpr) -> ProgramSize:
        """The size of a program, as `size_of` counts it."""
        if program not in self._sizes:
            for expr in topological([program], self._parts):
                self._add(expr)
            parts, depth = self._parts[program]
            ops, selectors = (parts & self._ops).bit_count(), (parts & self._selectors).bit_count()
            self._sizes[program] = ProgramSize(ops, depth, selectors)
        return self._sizes[program]

    def _add(self, expr: RASPExpr) -> None:
        own = parts = 1 << len(self._parts)
        depth = 0
        for child in expr.children:
            below, deep = self._parts[child]
            parts, depth = parts | below, max(depth, deep)
        counts = not isinstance(expr, (Selector, *FREE))
        self._ops |= own * counts
        self._selectors |= own * isinstance(expr, Select)
        self._parts[expr] = parts, depth + counts
