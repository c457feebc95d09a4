"""The program as a computational graph with the values each s-op can take: steps 1 and 2 of the compiler.

An edge into a selector is marked k (keys) or q (queries), the values of an aggregate v.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracr.model.saving.saved_graph import SavedNode, saved_graph
from tracr.viz.canvas import BLUE, GREY, INK, LINE, MARGIN, ORANGE, PALE, SIZE, SMALL, Canvas, text_width
from tracr.viz.labels import domain_label, shortened, visible
from tracr.viz.layering import Layout, arrange

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["computational_graph"]

NAME = 26  # characters
SOURCES = ("Tokens", "Indices", "Length")
ATTENTION = ("Aggregate", "SelectorWidth")
ROLES = {"Select": ("k", "q"), "Aggregate": ("", "v")}

Line = tuple[str, float, str, str]  # text, size, weight, colour


def computational_graph(model: CompiledModel, *, ax: Axes | None = None) -> Figure:
    """The program's graph, with inferred value sets and encodings.

    Selectors have dashed boxes, s-ops that attention computes orange ones, elementwise s-ops blue ones; the output is
    bold. An s-op without values was merged into another.

    Args:
        model: a compiled model.
        ax: draw in this axes instead of a figure of its own.
    """
    nodes = saved_graph(model.graph).nodes
    lines = [_lines(model, number, node) for number, node in enumerate(nodes)]
    sizes = [_size(text) for text in lines]
    late = [n for n, node in enumerate(nodes) if not node.children and node.kind not in SOURCES]
    layout = arrange(sizes, [node.children for node in nodes], late)
    canvas = Canvas(layout.width + 2 * MARGIN, layout.height + 2 * MARGIN, ax)
    drawn = set()
    for (source, target), route in layout.routes.items():
        points = [(x + MARGIN, y + MARGIN) for x, y in route]
        last = -3 if points[-2][0] == points[-1][0] else -2
        for piece in pairwise(points[: last + 1]):
            if piece not in drawn:  # edges from one node share their way
                canvas.curve(piece, arrow=False)
            drawn.add(piece)
        canvas.curve(points[last:], arrow=True)
        _role(canvas, nodes[target], source, points[last:])
    for number, node in enumerate(nodes):
        _box(canvas, node, lines[number], sizes[number], layout, number)
    return canvas.figure


def _lines(model: CompiledModel, number: int, node: SavedNode) -> list[Line]:
    output = any(number == place for _, place in model.graph.outputs)
    lines = [(shortened(visible(node.label), NAME), SIZE, "bold" if output else "normal", INK)]
    known = {sop.label: sop for sop in model.typed.sops.values()}
    if node.label not in known:
        return [*lines, (node.kind, SMALL, "normal", GREY)]
    sop = known[node.label]
    what = f"{node.kind}, {sop.encoding.value}"
    return [*lines, (what, SMALL, "normal", GREY), (domain_label(sop.domain), SMALL, "normal", INK)]


def _size(lines: list[Line]) -> tuple[float, float]:
    return max(text_width(text, size, weight) for text, size, weight, _ in lines) + 0.2, LINE * len(lines) + 0.1


def _box(
    canvas: Canvas, node: SavedNode, lines: list[Line], size: tuple[float, float], layout: Layout, number: int
) -> None:
    x, y = (coordinate + MARGIN for coordinate in layout.middles[number])
    selector = (node.kind.startswith("Select") and node.kind not in ATTENTION) or node.kind == "ConstantSelector"
    edge = INK if selector else ORANGE if node.kind in ATTENTION else BLUE if node.children else GREY
    face = "white" if selector else "#fdf3e7" if node.kind in ATTENTION else "#eaf1fa" if node.children else PALE
    left, top = x - size[0] / 2, y - size[1] / 2
    canvas.box(left, top, *size, face=face, edge=edge, rounded=True, dashed=selector)
    for place, (text, points, weight, color) in enumerate(lines):
        canvas.text(x, top + 0.05 + LINE * (place + 0.5), text, size=points, weight=weight, color=color, ha="center")


def _role(canvas: Canvas, node: SavedNode, source: int, points: Sequence[tuple[float, float]]) -> None:
    """Write which input of the node an edge leads into, on the side the edge does not come from."""
    roles = ROLES.get(node.kind, ())
    marks = ", ".join(role for role, child in zip(roles, node.children, strict=False) if child == source and role)
    x, y = points[-1]
    side, ha = (0.06, "left") if points[0][0] <= x else (-0.06, "right")
    canvas.text(x + side, y - 0.09, marks, size=SMALL, color=GREY, ha=ha)
