"""The program as a computational graph with the domain of each s-op: steps 1 and 2 of the compiler.

An edge into a selector is marked k (keys) or q (queries), the edge of the values into an aggregate v.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracr.viz.blocks import Block, Line, text_box
from tracr.viz.canvas import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PAGE_MARGIN,
    PALE,
    PALE_BLUE,
    PALE_ORANGE,
    SIZE,
    SMALL_FONT,
    Canvas,
)
from tracr.viz.labels import domain_label, shortened, visible
from tracr.viz.layering import arrange

if TYPE_CHECKING:
    from tracr.ir.graph import Node
    from tracr.ir.program import SOpNode
    from tracr.model.designed import DesignedModel

__all__ = ["computational_graph"]

NAME_LENGTH = 26  # most characters of a name
SOURCES = ("Tokens", "Indices", "Length")
ATTENTION = ("Aggregate", "SelectorWidth")
ROLES = {"Select": ("k", "q"), "Aggregate": ("", "v")}


def computational_graph(model: DesignedModel, *, ax: Axes | None = None) -> Figure:
    """Draw the program's graph, with the inferred domain and the encoding of each s-op.

    Selectors have dashed boxes, s-ops computed by attention orange boxes, elementwise s-ops blue boxes; the output is
    bold. An s-op without values was merged into another.

    Args:
        model: a compiled model.
        ax: draw in this axes instead of a new figure.
    """
    nodes = model.graph.nodes
    sops = {sop.label: sop for sop in model.program.sops.values()}
    outputs = {number for _, number in model.graph.outputs}
    boxes = [_box(node, _lines(node, sops.get(node.label), n in outputs)) for n, node in enumerate(nodes)]
    late = [n for n, node in enumerate(nodes) if not node.children and node.kind not in SOURCES]
    layout = arrange([(box.width, box.height) for box in boxes], [node.children for node in nodes], late)
    canvas = Canvas(layout.width + 2 * PAGE_MARGIN, layout.height + 2 * PAGE_MARGIN, ax)
    drawn = set()
    for (source, target), route in layout.routes.items():
        points = [(x + PAGE_MARGIN, y + PAGE_MARGIN) for x, y in route]
        last = -3 if points[-2][0] == points[-1][0] else -2
        for piece in pairwise(points[: last + 1]):
            if piece not in drawn:  # edges from one node share their path
                canvas.curve(piece, arrow=False)
            drawn.add(piece)
        canvas.curve(points[last:], arrow=True)
        _role(canvas, nodes[target], source, points[last:])
    for number, box in enumerate(boxes):
        x, y = layout.middles[number]
        box.draw(canvas, x + PAGE_MARGIN - box.width / 2, y + PAGE_MARGIN - box.height / 2)
    return canvas.figure


def _lines(node: Node, sop: SOpNode | None, output: bool) -> list[Line]:
    """The lines of a box: name, kind and, unless merged into another s-op, the domain."""
    name = (shortened(visible(node.label), NAME_LENGTH), SIZE, "bold" if output else "normal", INK)
    if sop is None:
        return [name, (node.kind, SMALL_FONT, "normal", GREY)]
    what = (f"{node.kind}, {sop.encoding.value}", SMALL_FONT, "normal", GREY)
    return [name, what, (domain_label(sop.domain), SMALL_FONT, "normal", INK)]


def _box(node: Node, lines: list[Line]) -> Block:
    if (node.kind.startswith("Select") and node.kind not in ATTENTION) or node.kind == "ConstantSelector":
        return text_box(lines, INK, "white", dashed=True)
    if node.kind in ATTENTION:
        return text_box(lines, ORANGE, PALE_ORANGE)
    return text_box(lines, BLUE, PALE_BLUE) if node.children else text_box(lines, GREY, PALE)


def _role(canvas: Canvas, node: Node, source: int, points: Sequence[tuple[float, float]]) -> None:
    """Mark the input of the node that an edge leads into, on the side away from the edge."""
    roles = ROLES.get(node.kind, ())
    marks = ", ".join(role for role, child in zip(roles, node.children, strict=False) if child == source and role)
    x, y = points[-1]
    side, ha = (0.06, "left") if points[0][0] <= x else (-0.06, "right")
    canvas.text(x + side, y - 0.09, marks, size=SMALL_FONT, color=GREY, ha=ha)
