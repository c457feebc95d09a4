"""Drawings of known size, placed in rows and columns; most figures consist of one kind, a labelled matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tracr.viz.canvas import GREY, INK, LINE, PAGE_MARGIN, SMALL_FONT, Canvas, text_width
from tracr.viz.labels import number_label, shortened

__all__ = [
    "MATRIX_CELL",
    "NUMBER_WIDTH",
    "Block",
    "Labels",
    "Line",
    "beside",
    "evenly",
    "figure_of",
    "in_lines",
    "labels",
    "lowered",
    "matrix",
    "note",
    "stacked",
    "text_box",
    "titled",
]

LABEL_LENGTH = 26  # most characters of a label
MATRIX_CELL = 0.165
NUMBER_WIDTH = 0.32  # the width of a cell that holds a number
MANY, FEW = 40, 8  # with more than MANY rows, variables with more than FEW values are drawn thin
THIN = 0.05

Line = tuple[str, float, str, str]  # text, size, weight, colour


@dataclass(frozen=True)
class Block:
    """A drawing of known width and height; `draw` takes its upper left corner."""

    width: float
    height: float
    draw: Callable[[Canvas, float, float], None]


def stacked(blocks: Sequence[Block], gap: float) -> Block:
    """Place blocks one below the other."""

    def draw(canvas: Canvas, x: float, y: float) -> None:
        for block in blocks:
            block.draw(canvas, x, y)
            y += block.height + gap

    height = sum(block.height + gap for block in blocks) - gap
    return Block(max(block.width for block in blocks), height, draw)


def beside(blocks: Sequence[Block], gap: float) -> Block:
    """Place blocks one right of the other."""

    def draw(canvas: Canvas, x: float, y: float) -> None:
        for block in blocks:
            block.draw(canvas, x, y)
            x += block.width + gap

    width = sum(block.width + gap for block in blocks) - gap
    return Block(width, max(block.height for block in blocks), draw)


def lowered(block: Block, by: float) -> Block:
    """A block with space above it."""
    return Block(block.width, block.height + by, lambda canvas, x, y: block.draw(canvas, x, y + by))


def note(text: str) -> Block:
    """A few small lines."""
    lines = text.split("\n")

    def draw(canvas: Canvas, x: float, y: float) -> None:
        for number, line in enumerate(lines):
            canvas.text(x, y + (number + 0.5) * LINE, line, size=SMALL_FONT, color=GREY)

    return Block(max(text_width(line, SMALL_FONT) for line in lines), LINE * len(lines), draw)


def text_box(lines: Sequence[Line], edge: str, face: str, *, dashed: bool = False) -> Block:
    """A rounded box with lines of text, all centred."""
    width = max(text_width(text, size, weight) for text, size, weight, _ in lines) + 0.2
    height = LINE * len(lines) + 0.1

    def draw(canvas: Canvas, x: float, y: float) -> None:
        canvas.box(x, y, width, height, edge=edge, face=face, rounded=True, dashed=dashed)
        for place, (text, size, weight, color) in enumerate(lines):
            at = y + 0.05 + LINE * (place + 0.5)
            canvas.text(x + width / 2, at, text, size=size, weight=weight, color=color, ha="center")

    return Block(width, height, draw)


def titled(title: str, subtitle: str, block: Block, remark: str = "") -> Block:
    """A block below a bold title, a plain subtitle and an optional small remark; texts much wider than it are cut."""
    width = max(block.width, 2.6)
    title, subtitle, remark = _cut(title, width, 8, "bold"), _cut(subtitle, width, 8), _cut(remark, width, SMALL_FONT)
    header = LINE * (3 if remark else 2) + 0.08

    def draw(canvas: Canvas, x: float, y: float) -> None:
        canvas.text(x, y + 0.5 * LINE, title, weight="bold")
        canvas.text(x, y + 1.5 * LINE, subtitle)
        if remark:
            canvas.text(x, y + 2.5 * LINE, remark, size=SMALL_FONT, color=GREY)
        block.draw(canvas, x, y + header)

    widths = (text_width(title, weight="bold"), text_width(subtitle), text_width(remark, SMALL_FONT))
    return Block(max(block.width, *widths), header + block.height, draw)


def _cut(text: str, width: float, size: float, weight: str = "normal") -> str:
    limit = len(text)
    while limit > 4 and text_width(shortened(text, limit), size, weight) > width:
        limit -= 1
    return shortened(text, limit)


def in_lines(blocks: Sequence[Block], width: float, gap: float) -> list[list[Block]]:
    """Break blocks into lines no wider than `width`, if each block fits."""
    lines: list[list[Block]] = []
    for block in blocks:
        if lines and beside([*lines[-1], block], gap).width <= width:
            lines[-1].append(block)
        else:
            lines.append([block])
    return lines


def figure_of(blocks: Sequence[Block], width: float, ax: Axes | None, gap: float = 0.35) -> Figure:
    """A figure of blocks in lines."""
    lines = in_lines(blocks, width - 2 * PAGE_MARGIN, gap)
    whole = stacked([beside(line, gap) for line in lines], gap)
    canvas = Canvas(whole.width + 2 * PAGE_MARGIN, whole.height + 2 * PAGE_MARGIN, ax)
    whole.draw(canvas, PAGE_MARGIN, PAGE_MARGIN)
    return canvas.figure


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of the rows (or columns) of a matrix: texts with their positions, and the edges of the cells."""

    edges: NDArray[np.float64]
    texts: tuple[tuple[str, float], ...]

    @property
    def size(self) -> float:
        """The total size of the cells."""
        return float(self.edges[-1])

    @property
    def widest(self) -> float:
        """The width of the widest text."""
        return max((text_width(text) for text, _ in self.texts), default=0.0)


def labels(names: Sequence[tuple[str, str]], cell: float = MATRIX_CELL) -> Labels:
    """Labels `variable:value` for (variable, value) pairs (only `variable` if value is "").

    If there are many labels, a variable with many values is drawn thin, with one label.
    """
    edges, texts = [0.0], []
    for variable, group in groupby(names, key=lambda name: name[0]):
        values = [value for _, value in group]
        if len(names) > MANY and len(values) > FEW:
            size = max(LINE, THIN * len(values))
            texts.append((f"{shortened(variable, LABEL_LENGTH)}: {len(values)} values", edges[-1] + size / 2))
            edges += (edges[-1] + size * np.arange(1, len(values) + 1) / len(values)).tolist()
            continue
        for value in values:
            texts.append((shortened(f"{variable}:{value}" if value else variable, LABEL_LENGTH), edges[-1] + cell / 2))
            edges.append(edges[-1] + cell)
    return Labels(np.array(edges), tuple(texts))


def evenly(count: int, cell: float, names: Sequence[str] = ()) -> Labels:
    """Cells of equal size, with one name each or without names."""
    texts = tuple((shortened(name, LABEL_LENGTH), (place + 0.5) * cell) for place, name in enumerate(names))
    return Labels(np.arange(count + 1, dtype=np.float64) * cell, texts)


def matrix(
    title: str,
    values: NDArray[Any],
    rows: Labels,
    columns: Labels,
    *,
    marked: NDArray[Any] | None = None,
    scale: float | None = None,
    left: float = 0.0,
) -> Block:
    """A labelled matrix, with row labels in a column at least `left` wide.

    Shades are relative to `scale`, else to the largest number, which the title then shows.
    """
    if scale is None:
        largest = float(np.abs(values).max(initial=0.0))
        title, scale = f"{title} (largest {number_label(largest) or 0})", largest or 1.0
    cell = float(np.diff(columns.edges).min(initial=np.inf))
    turned = any(text_width(text) > cell - 0.02 for text, _ in columns.texts)
    below = columns.widest + 0.08 if turned else LINE if columns.texts else 0.0
    left = max(left, rows.widest + 0.06)
    top = LINE + 0.03

    def draw(canvas: Canvas, x: float, y: float) -> None:
        canvas.text(x + left, y + 0.5 * LINE, title, size=SMALL_FONT)
        x, y = x + left, y + top
        if values.size:
            canvas.cells(x + columns.edges, y + rows.edges, values / scale, marked=marked, mark=INK)
        canvas.box(x, y, columns.size, rows.size, edge=GREY, line=0.5)
        for label, at in rows.texts:
            canvas.text(x - 0.05, y + at, label, ha="right")
        for label, at in columns.texts:
            if turned:
                canvas.text(x + at, y + rows.size + 0.05, label, ha="right", rotation=90)
            else:
                canvas.text(x + at, y + rows.size + 0.6 * LINE, label, ha="center")
        if cell > NUMBER_WIDTH - 0.01 and np.diff(rows.edges).min(initial=MATRIX_CELL) > MATRIX_CELL - 0.01:
            for at, row in zip((rows.edges[1:] + rows.edges[:-1]) / 2, values, strict=True):
                canvas.numbers(x + columns.edges, y + at, row / scale, [number_label(number) for number in row])

    return Block(left + max(columns.size, text_width(title, SMALL_FONT)), top + rows.size + below, draw)
