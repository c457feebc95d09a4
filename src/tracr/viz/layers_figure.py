"""The components of each layer: steps 4 and 5 of the compiler.

The residual stream runs down the left side. Each sub-layer holds the heads or groups of neurons that read from it and
write to it, or nothing (a no-op). Neurons that only clear dimensions share a dashed box. The folded variables are
listed below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracr.craft.heads import Head
from tracr.craft.mlps import MLP
from tracr.model.interventions import folded
from tracr.viz.blocks import Block, Line, beside, in_lines, stacked, text_box
from tracr.viz.canvas import (
    BLUE,
    GREY,
    INK,
    LINE,
    ORANGE,
    PAGE_MARGIN,
    PALE,
    PALE_BLUE,
    PALE_ORANGE,
    SIZE,
    SMALL_FONT,
    Canvas,
    wrapped,
)
from tracr.viz.labels import shortened, visible

if TYPE_CHECKING:
    from tracr.ir.circuit import Component
    from tracr.model.designed import DesignedModel

__all__ = ["layer_allocation"]

LINE_LENGTH = 44  # most characters in a line of a box
STREAM = 0.62  # the x of the residual stream
BOX_GAP = 0.12
FOOTER = 3.0  # the least width of the text below


def layer_allocation(model: DesignedModel, *, width: float = 10.0, ax: Axes | None = None) -> Figure:
    """Draw the components of each layer: what each writes and reads, and its size.

    Args:
        model: a compiled model.
        width: the largest width in inches; more components of a sub-layer go into further lines.
        ax: draw in this axes instead of a new figure.
    """
    room = width - 2 * PAGE_MARGIN - STREAM - 0.2
    embedded = list(dict.fromkeys(d.variable for d in model.residual if d.writer in ("embed", "pos_embed")))
    rows = [("", text_box([(f"embedding: {_listed(embedded)}", SIZE, "normal", INK)], GREY, PALE))]
    for sublayer in model.schedule.sublayers():
        clearing = [part for part in sublayer.components if isinstance(part, MLP) and part.clears]
        boxes = [_component(part) for part in sublayer.components if part not in clearing]
        boxes += [_clearing(clearing)] if clearing else []
        rows.append((sublayer.title, _sublayer(boxes, room)))
    outputs = ", ".join(visible(output.name) for output in model.outputs)
    rows.append(("", text_box([(f"unembedding: {outputs}", SIZE, "bold", INK)], GREY, PALE)))
    whole = stacked([block for _, block in rows], BOX_GAP)
    across = max(whole.width, FOOTER if model.circuit.folded else 0.0)
    footer = _footer(model, across)
    below = 2 * BOX_GAP + LINE * len(footer) if footer else 0.0
    canvas = Canvas(2 * PAGE_MARGIN + STREAM + 0.2 + across, 2 * PAGE_MARGIN + whole.height + below, ax)
    _draw(canvas, rows)
    for number, line in enumerate(footer):
        y = PAGE_MARGIN + whole.height + 2 * BOX_GAP + LINE * (number + 0.5)
        canvas.text(PAGE_MARGIN + STREAM + 0.2, y, line, size=SMALL_FONT, color=GREY)
    return canvas.figure


def _footer(model: DesignedModel, width: float) -> list[str]:
    """The lines that list the folded variables, which no component computes."""
    found = [
        f"{visible(variable)} from {_listed(one.made_of) if one.made_of else 'a constant'};"
        for variable, one in folded(model.program, model.layout).items()
    ]
    said = f"Folded into their readers: {' '.join(found)}".removesuffix(";").split()
    return wrapped(said, width, SMALL_FONT) if found else []


def _draw(canvas: Canvas, rows: Sequence[tuple[str, Block]]) -> None:
    x, y = PAGE_MARGIN + STREAM, PAGE_MARGIN
    first, last = rows[0][1].height / 2, rows[-1][1].height / 2
    height = sum(block.height + BOX_GAP for _, block in rows) - BOX_GAP
    canvas.line([(x, y + first), (x, y + height - last)], color=INK, line=1.6)
    for name, block in rows:
        middle = y + block.height / 2
        canvas.line([(x, middle), (x + 0.2, middle)], color=INK, line=0.8)
        canvas.text(x - 0.08, middle, name, ha="right", weight="bold")
        block.draw(canvas, x + 0.2, y)
        y += block.height + BOX_GAP


def _component(component: Component) -> Block:
    if isinstance(component, Head):
        size, edge, face = f"head of rank {component.rank}", ORANGE, PALE_ORANGE
    else:
        size, edge, face = _neurons(component.read.width), BLUE, PALE_BLUE
    reads = [variable.label for variable in component.reads if variable.node is not None]
    writes = _listed([variable.label for variable, _ in component.writes])
    lines: list[Line] = [(writes, SIZE, "bold", INK)]
    if reads:
        lines.append((f"reads {_listed(reads)}", SMALL_FONT, "normal", INK))
    return text_box([*lines, (size, SMALL_FONT, "normal", GREY)], edge, face)


def _clearing(parts: Sequence[MLP]) -> Block:
    """The neurons of a sub-layer that clear dimensions, in one box."""
    names = [variable.label for part in parts for variable, _ in part.clears]
    size = _neurons(sum(part.read.width for part in parts))
    lines: list[Line] = [(f"clears {_listed(names)}", SMALL_FONT, "normal", INK), (size, SMALL_FONT, "normal", GREY)]
    return text_box(lines, GREY, "white", dashed=True)


def _listed(names: Sequence[str]) -> str:
    """Names separated by commas, as many as fit."""
    shown: list[str] = []
    for number, name in enumerate(map(visible, names)):
        if shown and len(", ".join([*shown, name])) > LINE_LENGTH:
            return f"{', '.join(shown)} and {len(names) - number} more"
        shown.append(shortened(name, LINE_LENGTH))
    return ", ".join(shown) or "nothing"


def _neurons(count: int) -> str:
    return f"{count} neuron{'s' if count != 1 else ''}"


def _sublayer(boxes: Sequence[Block], room: float) -> Block:
    if not boxes:
        return text_box([("no-op", SMALL_FONT, "normal", GREY)], GREY, "white", dashed=True)
    return stacked([beside(line, BOX_GAP) for line in in_lines(boxes, room, BOX_GAP)], BOX_GAP)
