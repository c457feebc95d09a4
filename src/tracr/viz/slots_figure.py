"""The variable stored in each dimension of the residual stream, from the embedding to the last sub-layer.

A variable's box is dark until its last reader. After that it is pale, until the sub-layer that clears it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracr.compiler.residual.slot_reuse import last_reads
from tracr.viz.blocks import LABEL_LENGTH, Block, figure_of
from tracr.viz.canvas import BLUE, GREY, INK, LINE, ORANGE, PALE, PALE_BLUE, PALE_ORANGE, SMALL_FONT, Canvas, text_width
from tracr.viz.labels import shortened, visible

if TYPE_CHECKING:
    from tracr.ir.layout import Direction
    from tracr.model.designed import DesignedModel

__all__ = ["dimension_use"]

SLOT_HEIGHT = 0.13
COLUMN, WIDEST = 0.62, 1.0


def dimension_use(model: DesignedModel, *, width: float = 10.0, ax: Axes | None = None) -> Figure:
    """Draw dimensions as rows, sub-layers as columns, and a box for each variable while it is stored.

    Args:
        model: a compiled model.
        width: the largest width in inches.
        ax: draw in this axes instead of a new figure.
    """
    return figure_of([slots_block(model, width)], width, ax)


def slots_block(model: DesignedModel, width: float = 10.0, title: str = "") -> Block:
    """The picture as a block, with an optional title."""
    columns = 2 * model.n_layers + 1
    labels = {visible(one.variable.label) for one in model.layout.directions}
    wanted = max((text_width(shortened(label, LABEL_LENGTH), SMALL_FONT) + 0.08 for label in labels), default=0.0)
    column = min(max(COLUMN, wanted), WIDEST, (width - 0.6) / columns)
    head = LINE * (2 if title else 1)
    last = last_reads(model.schedule)

    def draw(canvas: Canvas, x: float, y: float) -> None:
        if title:
            canvas.text(x, y + LINE / 2, title, weight="bold")
        for place, name in enumerate(_names(model)):
            canvas.text(x + (place + 0.5) * column, y + head - LINE / 2, name, size=SMALL_FONT, color=GREY, ha="center")
        for group in _groups(model):
            _box(canvas, x, y + head, column, columns, group, last.get(group[0].variable, -1))

    size = max(columns * column, text_width(title, weight="bold") if title else 0.0)
    return Block(size, head + SLOT_HEIGHT * model.layout.width, draw)


def _names(model: DesignedModel) -> Iterator[str]:
    yield "embed"
    for sublayer in model.schedule.sublayers():
        yield sublayer.title


def _groups(model: DesignedModel) -> Iterator[list[Direction]]:
    """Neighbouring dimensions that hold one variable in the same sub-layers."""
    group: list[Direction] = []
    for one in sorted(model.layout.directions, key=lambda one: (one.since, one.variable.label, one.slot)):
        if group:
            before = group[-1]
            together = (before.variable, before.since, before.until) == (one.variable, one.since, one.until)
            if not together or one.slot != before.slot + 1:
                yield group
                group = []
        group.append(one)
    if group:
        yield group


def _box(canvas: Canvas, x: float, y: float, column: float, columns: int, group: list[Direction], last: int) -> None:
    first = group[0]
    start, stop = first.since + 1, min(first.until + 1, columns)
    read = max(start + 1, min(last + 1, stop))
    edge, face = [(GREY, PALE), (ORANGE, PALE_ORANGE), (BLUE, PALE_BLUE)][0 if start == 0 else 2 - start % 2]
    top, height = y + SLOT_HEIGHT * first.slot, SLOT_HEIGHT * len(group)
    canvas.box(x + start * column, top, (stop - start) * column, height, edge=edge, face="white", line=0.4)
    canvas.box(x + start * column, top, (read - start) * column, height, edge=edge, face=face, line=0.6)
    room, name, limit = (stop - start) * column - 0.06, visible(first.variable.label), LABEL_LENGTH
    while limit > 2 and text_width(shortened(name, limit), SMALL_FONT) > room:
        limit -= 1
    canvas.text(x + start * column + 0.03, top + height / 2, shortened(name, limit), size=SMALL_FONT, color=INK)
