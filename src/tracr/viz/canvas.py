"""The drawing surface of all figures: one axes measured in inches, y downwards.

Texts are measured before anything is placed. Labels therefore keep their size and do not overlap, and a figure is as
large as its content. If the user gives an axes, the same drawing is scaled to fit it.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any, BinaryIO

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from tracr.errors import TracrWarning
from tracr.writing import write_file, written_to

__all__ = [
    "ABSENT",
    "BLUE",
    "GREY",
    "INK",
    "LINE",
    "ORANGE",
    "PAGE_MARGIN",
    "PALE",
    "PALE_BLUE",
    "PALE_ORANGE",
    "RED",
    "SIZE",
    "SMALL_FONT",
    "Canvas",
    "save_figure",
    "shades",
    "text_width",
    "wrapped",
    "write_figure",
]

FONT = "DejaVu Sans"  # part of matplotlib, so the font measured is the font drawn
SIZE = 8.0  # points
SMALL_FONT = 6.5
TINY_FONT = 5.0  # smaller text is unreadable
PAGE_MARGIN = 0.12
WIDTH_SLACK = 1.05
LINE = SIZE / 72 * 1.35

INK, GREY, PALE, ABSENT = "#1f2430", "#7a808c", "#eef0f4", "#dfe2e8"
RED, BLUE, ORANGE = "#d62728", "#1f5fa8", "#c2660a"
PALE_BLUE, PALE_ORANGE = "#eaf1fa", "#fdf3e7"

Array = NDArray[Any]


class InlineFigure(Figure):
    """A Figure that notebooks display."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as matplotlib does, but raise a WriteError if the disk is full or read-only."""
        named = isinstance(fname, str | os.PathLike)
        with written_to(FilePath(fname)) if named else nullcontext():
            super().savefig(fname, **options)

    def _repr_svg_(self) -> str:
        file = io.BytesIO()
        write_figure(self, file, "svg")
        return file.getvalue().decode()


def write_figure(figure: Figure, file: BinaryIO, kind: str, dpi: float = 200) -> None:
    """Write a figure as `pdf`, `svg`, `png` or the like; the same figure gives the same bytes."""
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with mpl.rc_context({"svg.hashsalt": "tracr"}):
        figure.savefig(file, format=kind, dpi=dpi, metadata=undated)


def save_figure(figure: Figure, path: FilePath, dpi: float = 200) -> None:
    """Write a figure to a file, completely or not at all, in the format of the file name's suffix."""
    file = io.BytesIO()
    write_figure(figure, file, path.suffix[1:].lower(), dpi)
    write_file(path, file.getvalue())


@cache
def _font(weight: str) -> FontProperties:
    return FontProperties(family=FONT, weight=weight)


@cache
def _drawable(text: str) -> str:
    """A text with escapes in place of characters that the font lacks."""
    font = get_font(findfont(_font("normal")))
    return "".join(c if font.get_char_index(ord(c)) else c.encode("unicode_escape").decode() for c in text)


@cache
def text_width(text: str, size: float = SIZE, weight: str = "normal") -> float:
    """The width of a text in inches, with a margin for the rounding of glyphs on screens."""
    font = _font(weight).copy()
    font.set_size(size)
    return WIDTH_SLACK * float(text_to_path.get_text_width_height_descent(_drawable(text), font, False)[0]) / 72


def wrapped(words: Sequence[str], width: float, size: float = SIZE) -> list[str]:
    """Break words into lines no wider than `width` inches, if each word fits."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def shades(values: Array) -> Array:
    """Colours of numbers from -1 (orange) to 1 (blue); 0 is white, every other number is visibly coloured."""
    size = np.clip(np.abs(values), 0, 1)[..., None]
    ends = np.where(values[..., None] < 0, mpl.colors.to_rgb(ORANGE), mpl.colors.to_rgb(BLUE))
    weight = np.where(size > 0, 0.12 + 0.88 * size, 0)
    return np.asarray(1 - weight * (1 - ends))


class Scaling(Artist):
    """An artist drawn first: it sets the sizes of fonts and lines to fit the current size of the axes."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__()
        self.natural = width, height
        self.sizes: list[tuple[Callable[[float], None], float]] = []
        self.set_zorder(-1)

    def draw(self, renderer: Any) -> None:
        assert self.axes is not None
        scale = self.axes.get_window_extent().width / self.axes.figure.dpi / self.natural[0]
        if scale * SIZE < TINY_FONT:
            width, height = self.natural
            warnings.warn(
                f"this axes is too small to read: the figure needs about {width:.1f} by {height:.1f} inches",
                TracrWarning,
                stacklevel=2,
            )
        for resize, size in self.sizes:
            resize(scale * size)


class Canvas:
    """A drawing of a known size."""

    def __init__(self, width: float, height: float, ax: Axes | None) -> None:
        width, height = max(width, 0.1), max(height, 0.1)
        if ax is None:
            figure: Figure = InlineFigure(figsize=(width, height), facecolor="white")
            ax = figure.add_axes((0, 0, 1, 1))
        self.ax = ax
        self.scaling = Scaling(width, height)
        ax.set_axis_off()
        ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", anchor="N")
        ax.add_artist(self.scaling)

    @property
    def figure(self) -> Figure:
        """The figure of the axes."""
        figure = self.ax.get_figure(root=True)
        assert figure is not None
        return figure

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = SIZE,
        ha: str = "left",
        va: str = "center_baseline",
        weight: str = "normal",
        color: Any = INK,
        rotation: float = 0,
    ) -> None:
        """Write a text."""
        font = _font(weight).copy()
        font.set_size(size)
        written = self.ax.text(
            x,
            y,
            _drawable(text),
            fontproperties=font,
            ha=ha,
            va=va,
            color=color,
            rotation=rotation,
            rotation_mode="anchor" if rotation else "default",
            parse_math=False,
            in_layout=False,
        )
        self.scaling.sizes.append((written.set_fontsize, size))

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        face: Any = "none",
        edge: Any = "none",
        line: float = 0.8,
        rounded: bool = False,
        dashed: bool = False,
    ) -> None:
        """Draw a rectangle from its upper left corner."""
        style: dict[str, Any] = {"facecolor": face, "edgecolor": edge}
        style["linestyle"] = (0, (3, 2)) if dashed else "solid"
        if rounded:
            shape = "round,pad=0,rounding_size=0.06"
            patch: Patch = FancyBboxPatch((x, y), width, height, boxstyle=shape, **style)
        else:
            patch = Rectangle((x, y), width, height, **style)
        self._add(patch, line)

    def line(self, points: Sequence[tuple[float, float]], color: Any = GREY, line: float = 0.6) -> None:
        """Draw a line through points."""
        xs, ys = zip(*points, strict=True)
        self._add(Line2D(xs, ys, color=color, solid_capstyle="butt"), line)

    def curve(self, points: Sequence[tuple[float, float]], *, arrow: bool, color: Any = GREY) -> None:
        """Draw a smooth downward line through points, with an arrowhead if `arrow`."""
        vertices, codes = [points[0]], [Path.MOVETO]
        for (x, y), (to_x, to_y) in pairwise(points):
            middle = (y + to_y) / 2
            vertices += [(x, middle), (to_x, middle), (to_x, to_y)]
            codes += [Path.CURVE4] * 3
        style = "-|>,head_length=3,head_width=1.6" if arrow else "-"
        patch = FancyArrowPatch(path=Path(vertices, codes), arrowstyle=style, color=color, shrinkA=0, shrinkB=0)
        self._add(patch, 0.8)
        self.scaling.sizes.append((patch.set_mutation_scale, 1.0))

    def cells(
        self,
        xs: Array,
        ys: Array,
        values: Array,
        *,
        marked: Array | None = None,
        mark: Any = RED,
        absent: Sequence[int] = (),
    ) -> None:
        """Draw a matrix of numbers from -1 to 1 between the lines at `xs` and `ys`.

        Marked cells have borders; `absent` rows are grey.
        """
        self.box(xs[0], ys[0], xs[-1] - xs[0], ys[-1] - ys[0], face="white")
        for row in absent:
            self.box(xs[0], ys[row], xs[-1] - xs[0], ys[row + 1] - ys[row], face=ABSENT)
        roomy = min(np.diff(xs).min(), np.diff(ys).min()) > 0.1
        if roomy:
            across = [[(xs[0], y), (xs[-1], y)] for y in ys[1:-1]]
            down = [[(x, ys[0]), (x, ys[-1])] for x in xs[1:-1]]
            self._add(LineCollection([*across, *down], colors=PALE), 0.4)
        if values.any():
            squares, faces = _squares(xs, ys, values != 0), shades(values[values != 0])
            self._add(PolyCollection(squares, facecolors=faces, edgecolors=PALE if roomy else "none"), 0.4)
        if marked is not None and marked.any():
            around = _squares(xs, ys, marked, inset=0.5 / 72)
            self._add(PolyCollection(around, facecolors="none", edgecolors=mark), 1.0)

    def _add(self, shape: Patch | Line2D | Collection, line: float) -> None:
        """Add a shape with lines `line` points wide."""
        self.ax.add_artist(shape)
        shape.set_in_layout(False)
        shape.set_clip_on(False)
        self.scaling.sizes.append((shape.set_linewidth, line))

    def numbers(self, xs: Array, y: float, values: Array, texts: Sequence[str]) -> None:
        """Write texts into a row of cells; light text on dark cells."""
        for left, right, value, text in zip(xs, xs[1:], values, texts, strict=False):
            if text:
                color = "white" if abs(value) > 0.55 else INK
                self.text((left + right) / 2, y, text, size=SMALL_FONT, ha="center", color=color)


def _squares(xs: Array, ys: Array, where: Array, inset: float = 0.0) -> list[Array]:
    """The corners of the cells in which `where` holds: [cell, corner, 2]."""
    rows, columns = np.nonzero(where)
    left, right = xs[columns] + inset, xs[columns + 1] - inset
    top, bottom = ys[rows] + inset, ys[rows + 1] - inset
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return list(np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1))
