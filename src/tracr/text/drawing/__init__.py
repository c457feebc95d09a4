"""SVG drawings of the computation of a program: layers and heads, selectors as grids, values in rows.

plan.py     the content, as data
svg.py      the SVG
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracr.arguments import flag
from tracr.errors import ExpressionError, InputError, TracrError
from tracr.rasp.base import RASPExpr
from tracr.text.drawing.plan import DrawingPlan, plan
from tracr.text.drawing.svg import svg
from tracr.values import Value, short_repr
from tracr.writing import write_file

__all__ = ["Drawing", "draw", "notebook_svg"]

EXAMPLES: tuple[Sequence[Value], ...] = ("hello", [3, 1, 2, 1])


@dataclass(frozen=True)
class Drawing:
    """The computation of an expression on an input; notebooks display it."""

    plan: DrawingPlan

    @property
    def svg(self) -> str:
        """The drawing as SVG."""
        return svg(self.plan)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.summary})"

    @property
    def summary(self) -> str:
        """The title, and the number of layers and heads of the program; a model may have more layers."""
        heads = sum(len(layer.heads) for layer in self.plan.layers)
        layers = len(self.plan.layers) - 1
        return f"{self.plan.title}: {layers} layer{'s' * (layers != 1)}, {heads} head{'s' * (heads != 1)}"

    def save(self, path: str | Path) -> Path:
        """Write the SVG to a file, whole or not at all; its name must end in .svg."""
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise InputError(
                f"a drawing is SVG, and {path.name} does not end in .svg",
                hint=f"save it as {path.with_suffix('.svg').name}; model.figure makes figures for .png and .pdf",
            )
        write_file(path, self.svg.encode())
        return path


def draw(expr: RASPExpr, xs: Sequence[Value], *, causal: bool = False) -> Drawing:
    """The computation of an s-op or a selector on an input, as a drawing; `causal`: with causal attention.

    >>> from tracr.rasp import rasp
    >>> draw(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist"), "hello")
    Drawing(hist("hello"): 1 layer, 1 head)
    """
    if not isinstance(expr, RASPExpr):
        raise ExpressionError(f"only an s-op or a selector can be drawn, not {short_repr(expr)}", hint="draw(x, 'abc')")
    return Drawing(plan(expr, xs, flag("causal", causal)))


def notebook_svg(expr: RASPExpr) -> str | None:
    """The drawing of an expression for notebooks, on the first of a few examples that it accepts, if any."""
    for example in EXAMPLES:
        try:
            return draw(expr, example).svg
        except TracrError:
            continue
    return None
