"""The residual stream after each sub-layer for one input: the paper's figures of compiled models.

One panel per sub-layer, one column per position, one row per direction; rows are grouped by variable. Cells that the
sub-layer changed have a red border. If directions share a dimension, their rows are grey while they are not stored.
Many panels are broken into strips; a strip then shows only the variables its sub-layers read or write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracr.model.run import Run
from tracr.model.stream import Step, steps
from tracr.viz.canvas import (
    ABSENT,
    GREY,
    INK,
    LINE,
    PAGE_MARGIN,
    PALE,
    RED,
    SMALL_FONT,
    Canvas,
    shades,
    text_width,
    wrapped,
)
from tracr.viz.choosing import chosen, one_run
from tracr.viz.labels import number_label, shortened, value_label
from tracr.viz.rows import Group, Row, Rows, grouped

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["residual_stream"]

ROW_HEIGHT = 0.165  # the height of a row
WIDE = 0.3  # the width of a cell that holds a number
PANEL_GAP = 0.16  # between panels
HEADER_HEIGHT = 2 * LINE + 0.04
STRIPS = 0.3  # between strips
LEGEND, TURNS = 3.2, 2.4  # the width of the legend of the colours, and of its part on shared dimensions
NAME_LENGTH = 28  # most characters of a name


def residual_stream(
    model: DesignedModel,
    tokens: Sequence[Any] | Run,
    *,
    rows: Rows = "auto",
    only: Sequence[str] | None = None,
    width: float = 13.0,
    ax: Axes | None = None,
) -> Figure:
    """Draw the residual stream for one input, one panel per sub-layer.

    Args:
        model: a compiled model.
        tokens: an input, or the run of one input (`model.run(tokens, set=...)` shows an intervention).
        rows: "all" dimensions, or only those "used" (not always zero) for this input; "auto" shows all up to 40.
        only: draw these sub-layers only, such as ["embed", "attn 0", "mlp 0"].
        width: the largest width in inches; wider figures are broken into strips.
        ax: draw in this axes instead of a new figure.
    """
    run = one_run(model, tokens)
    sublayers = chosen({step.name: step for step in steps(model, run)}, only, "sub-layer")
    plan = _Plan(model, [value_label(token) for token in run.tokens[0]], list(sublayers.values()))
    strips, notes = plan.strips(rows, width)
    labels = max(strip.labels_width for strip in strips)
    turns = model.residual.shared
    legend = LEGEND + TURNS * turns
    size = max(legend, labels + max(strip.width for strip in strips)), sum(strip.height + STRIPS for strip in strips)
    footer = _footer(size[0] - 2 * PAGE_MARGIN, notes, [group for strip in strips for group in strip.groups])
    canvas = Canvas(size[0], size[1] + PAGE_MARGIN + LINE * len(footer) + 2 * LINE, ax)
    y = PAGE_MARGIN
    for strip in strips:
        strip.draw(canvas, labels, y)
        y += strip.height + STRIPS
    _legend(canvas, y, turns)
    for number, line in enumerate(footer, start=1):
        canvas.text(PAGE_MARGIN, y + LINE * (number + 0.6), line, size=SMALL_FONT, color=GREY)
    return canvas.figure


@dataclass(frozen=True, eq=False)
class _Strip:
    """A row of panels with one column of labels."""

    groups: tuple[Group, ...]
    steps: Sequence[Step]
    tokens: Sequence[str]
    cell: float

    @property
    def names(self) -> list[str]:
        """The names of the variables as drawn."""
        return [_name(group) for group in self.groups]

    @property
    def values_width(self) -> float:
        """The width of the column of values."""
        return max((text_width(_value(row)) for g in self.groups if not g.single for row in g.rows), default=0.0)

    @property
    def labels_width(self) -> float:
        """The width of names and values."""
        beside = self.values_width + 0.14
        widths = [
            text_width(name, weight=_weight(group)) + (0 if group.single else beside)
            for name, group in zip(self.names, self.groups, strict=True)
        ]
        return max(widths, default=0.0) + 0.06

    @property
    def panel(self) -> float:
        """The width of a panel."""
        return self.cell * len(self.tokens)

    @property
    def pitch(self) -> float:
        """The distance from one panel to the next."""
        return max(self.panel, *(text_width(_title(step), weight="bold") for step in self.steps)) + PANEL_GAP

    @property
    def width(self) -> float:
        """The width of the strip without its labels."""
        return 2 * PAGE_MARGIN + len(self.steps) * self.pitch - PANEL_GAP

    @property
    def below(self) -> float:
        """The height of the tokens below the panels."""
        return max(LINE, *(0 if self._fits(token) else text_width(token) + 0.08 for token in self.tokens))

    def _fits(self, token: str) -> bool:
        return text_width(token) <= self.cell - 0.02

    @property
    def height(self) -> float:
        """The height of the strip."""
        return HEADER_HEIGHT + ROW_HEIGHT * sum(len(group.rows) for group in self.groups) + self.below

    def draw(self, canvas: Canvas, labels: float, top: float) -> None:
        """Draw the labels in a column `labels` wide, then every panel."""
        left = PAGE_MARGIN + labels
        self._labels(canvas, left, top + HEADER_HEIGHT)
        for place, step in enumerate(self.steps):
            x = left + place * self.pitch
            middle = x + self.panel / 2
            canvas.text(middle, top + LINE / 2, _title(step), ha="center", weight="bold")
            if step.idle:
                canvas.text(middle, top + 1.5 * LINE, "no-op", ha="center", size=SMALL_FONT, color=GREY)
            bottom = self._panel(canvas, step, x, top + HEADER_HEIGHT)
            for column, token in enumerate(self.tokens):
                at = x + (column + 0.5) * self.cell
                if self._fits(token):
                    canvas.text(at, bottom + 0.6 * LINE, token, ha="center")
                else:
                    canvas.text(at, bottom + 0.05, token, ha="right", rotation=90)

    def _labels(self, canvas: Canvas, right: float, y: float) -> None:
        for name, group in zip(self.names, self.groups, strict=True):
            height = ROW_HEIGHT * len(group.rows)
            if group.single:
                canvas.text(right - 0.05, y + ROW_HEIGHT / 2, name, ha="right", weight=_weight(group))
            else:
                x = right - 0.05 - self.values_width - 0.06
                canvas.line([(x, y + 0.03), (x, y + height - 0.03)], line=0.8)
                canvas.text(x - 0.05, y + height / 2, name, ha="right", weight=_weight(group))
                for place, row in enumerate(group.rows):
                    color = GREY if row.dimension is None else INK
                    canvas.text(right - 0.05, y + (place + 0.5) * ROW_HEIGHT, _value(row), ha="right", color=color)
            y += height

    def _panel(self, canvas: Canvas, step: Step, x: float, y: float) -> float:
        rows = [(row, group.scale) for group in self.groups for row in group.rows]
        values, marked = np.zeros((2, len(rows), len(self.tokens)))
        for place, (row, scale) in enumerate(rows):
            if row.dimension is not None:
                values[place] = np.round(step.stream[:, row.dimension], 3) / scale
                marked[place] = step.changed[:, row.dimension] & (step.name != "embed")
        xs, ys = x + self.cell * np.arange(len(self.tokens) + 1), y + ROW_HEIGHT * np.arange(len(rows) + 1)
        absent = [place for place, (row, _) in enumerate(rows) if not row.there(step)]
        canvas.cells(xs, ys, values, marked=marked.astype(bool), absent=absent)
        for place, (row, _) in enumerate(rows):
            if row.dimension is None:
                canvas.box(x, ys[place], self.panel, ROW_HEIGHT, face=PALE)
            elif row.number and self.cell >= WIDE:
                texts = [number_label(number) for number in step.stream[:, row.dimension]]
                canvas.numbers(xs, ys[place] + ROW_HEIGHT / 2, values[place], texts)
        for group in self.groups:
            canvas.box(x, y, self.panel, ROW_HEIGHT * len(group.rows), edge=GREY, line=0.5)
            y += ROW_HEIGHT * len(group.rows)
        return y


@dataclass(frozen=True, eq=False)
class _Plan:
    """How to break the panels into strips."""

    model: DesignedModel
    tokens: list[str]
    steps: list[Step]

    def strips(self, rows: Rows, width: float) -> tuple[list[_Strip], list[str]]:
        """The strips, and notes on what they leave out.

        One strip with cells wide enough for numbers if it fits, else narrow cells, else several strips without no-ops.
        """
        groups = grouped(self.model, self.steps, rows)
        room = max(map(text_width, self.tokens)) + 0.05
        wide = max(WIDE, room) if room <= 2 * WIDE else WIDE
        for cell in (wide, ROW_HEIGHT):
            strip = _Strip(groups, self.steps, self.tokens, cell)
            if strip.labels_width + strip.width <= width or len(self.steps) == 1:
                return [strip], []
        working = [step for step in self.steps if not step.idle] or self.steps[:1]
        idle = [_title(step) for step in self.steps if step not in working]
        fits = int((width - 2 * PAGE_MARGIN - strip.labels_width + PANEL_GAP) // strip.pitch)
        count = -(-len(working) // max(1, fits))
        parts = [list(part) for part in np.array_split(np.array(working, dtype=object), count)]
        notes = [f"No-ops are not shown: {', '.join(idle)}."] if idle else []
        if count > 1:
            notes.append("A row of panels shows the variables that its sub-layers read or write.")
        return [self._strip(part, rows, width, wide) for part in parts], notes

    def _strip(self, part: list[Step], rows: Rows, width: float, wide: float) -> _Strip:
        groups = grouped(self.model, part, rows, self._concerned(part))
        roomy = _Strip(groups, part, self.tokens, wide)
        return roomy if roomy.labels_width + roomy.width <= width else _Strip(groups, part, self.tokens, ROW_HEIGHT)

    def _concerned(self, part: Sequence[Step]) -> set[str]:
        """The variables that some sub-layers read or write."""
        places = {"embed", "pos_embed"} if part[0].name == "embed" else set()
        for step in part[part[0].name == "embed" :]:
            kind, number = step.name.split()
            places.add(f"blocks.{number}.{kind}")

        def concerns(place: str) -> bool:
            return ".".join(place.split(".")[:3]) in places

        return {
            dimension.variable
            for dimension in self.model.residual
            if any(map(concerns, (dimension.writer, *dimension.readers)))
        }


def _title(step: Step) -> str:
    return step.name.replace("mlp", "MLP").replace("attn", "Attn").replace("embed", "Embed")


def _name(group: Group) -> str:
    name = shortened(group.variable, NAME_LENGTH)
    return f"{name} (up to {number_label(group.scale)})" if group.scale > 1.001 else name


def _value(row: Row) -> str:
    return shortened(row.label, NAME_LENGTH)


def _weight(group: Group) -> str:
    return "bold" if group.output else "normal"


def _legend(canvas: Canvas, y: float, turns: bool) -> None:
    """Draw the legend of the colours, in one line."""
    x = PAGE_MARGIN + 0.14
    canvas.text(x - 0.04, y + 0.06, "−1", size=SMALL_FONT, ha="right")
    for number in (-1.0, -0.5, 0.0, 0.5, 1.0):
        canvas.box(x, y, 0.2, 0.12, face=tuple(shades(np.array(number))), edge=GREY, line=0.4)
        x += 0.2
    canvas.text(x + 0.04, y + 0.06, "1", size=SMALL_FONT)
    x += 0.3
    canvas.box(x, y, 0.2, 0.12, edge=RED, line=1.0)
    canvas.text(x + 0.26, y + 0.06, "changed by the sub-layer", size=SMALL_FONT)
    if turns:
        x += 1.7
        canvas.box(x, y, 0.2, 0.12, face=ABSENT, edge=GREY, line=0.4)
        canvas.text(x + 0.26, y + 0.06, "not stored: not written yet, or cleared", size=SMALL_FONT)


def _footer(width: float, notes: Sequence[str], groups: Sequence[Group]) -> list[str]:
    said = list(notes)
    if any(group.scale > 1.001 for group in groups):
        said.append("Variables with numbers above 1 are shaded from 0 to the largest.")
    return [line for note in said for line in wrapped(note.split(), width, SMALL_FONT)]
