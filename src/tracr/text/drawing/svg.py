"""A plan as SVG, written without other libraries."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from tracr.text.drawing.plan import DrawingPlan, DrawnHead, DrawnLayer, DrawnRow
from tracr.values import Value

__all__ = ["svg"]

INK, SOFT, LINE, PAPER, PANEL = "#1f2328", "#59636e", "#d1d9e0", "#ffffff", "#f6f8fa"
SELECTED, RESULT, CELL, HEADING = "#2f6db5", "#fff1d6", "#eaf1fa", "#8250df"
SIZE, SMALL = 12, 10
CHARACTER = 7.3  # of the monospaced font at SIZE
MARGIN, GAP = 16, 14
LABEL = 46  # characters of a label before it is cut, or, for a head, wrapped into so many
LINES = 4


def svg(plan: DrawingPlan) -> str:
    """The whole drawing."""
    parts: list[str] = []
    y = float(MARGIN + SIZE)
    parts.append(_text(MARGIN, y, plan.title, weight="bold", size=14))
    y += GAP
    width = 0.0
    for number, layer in enumerate(plan.layers):
        drawn, right, y = _layer(plan, layer, number, y)
        parts += drawn
        width = max(width, right)
    width, height = max(width, MARGIN + len(plan.title) * CHARACTER * 1.2) + MARGIN, y + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace">'
    )
    background = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return "\n".join([head, f"<title>{_safe(plan.title)}</title>", background, *parts, "</svg>", ""])


def _layer(plan: DrawingPlan, layer: DrawnLayer, number: int, y: float) -> tuple[list[str], float, float]:
    """A heading, the heads beside each other, the rows below; and its right and bottom ends."""
    parts: list[str] = []
    heading = f"layer {number - 1}" if number else "input"
    y += 1.5 * GAP
    parts.append(_text(MARGIN, y, heading, colour=HEADING, weight="bold"))
    y += GAP / 2
    right, bottom, x = 0.0, y, float(MARGIN)
    for head in layer.heads:
        drawn, end, low = _head(head, x, y)
        parts += drawn
        right, bottom, x = max(right, end), max(bottom, low), end + 2 * GAP
    y = bottom + (GAP if layer.heads else 0)
    rows = ((DrawnRow("tokens", plan.tokens),) if number == 0 else ()) + layer.rows
    drawn, end, y = _rows(rows, MARGIN, y)
    return [*parts, *drawn], max(right, end), y


def _head(head: DrawnHead, x: float, y: float) -> tuple[list[str], float, float]:
    size = len(head.grid)
    cell = 20 if size <= 12 else 15 if size <= 24 else 11
    keys, queries = [_short(key, 6) for key in head.keys], [_short(query, 6) for query in head.queries]
    left, widest = _small_width(queries) + 6, _small_width(keys)
    crowded = widest > cell - 2
    above = (widest if crowded else SMALL) + 6
    lines = [_cut(line, LABEL) for line in textwrap.wrap(head.label, LABEL)[:LINES]] or [""]
    parts = [_text(x, y + (place + 1) * (SIZE + 3) - 3, line) for place, line in enumerate(lines)]
    top, start = y + len(lines) * (SIZE + 3) + 3 + above, x + left
    for place, key in enumerate(keys):
        middle = start + (place + 0.5) * cell
        turned: dict[str, Any] = {"anchor": "start", "turn": -90} if crowded else {"anchor": "middle"}
        parts.append(_text(middle, top - 4, key, size=SMALL, colour=SOFT, **turned))
    for place, query in enumerate(queries):
        parts.append(_text(start - 4, top + (place + 0.5) * cell + 3.5, query, size=SMALL, colour=SOFT, anchor="end"))
    parts += _grid(head, start, top, cell)
    bottom = top + size * cell
    drawn, end, low = _rows(head.rows, x, bottom + GAP / 2)
    right = max(start + size * cell, end, x + max(map(len, lines)) * CHARACTER)
    return [*parts, *drawn], right, low if head.rows else bottom


def _small_width(texts: Sequence[str]) -> float:
    """The width of the longest of some small labels."""
    return max(map(len, texts)) * CHARACTER * SMALL / SIZE


def _grid(head: DrawnHead, left: float, top: float, cell: float) -> list[str]:
    """A box for each query and key, dark where the key is selected."""
    return [
        _box(left + column * cell, top + row * cell, cell, cell, SELECTED if chosen else PANEL, PAPER)
        for row, line in enumerate(head.grid)
        for column, chosen in enumerate(line)
    ]


def _rows(rows: Sequence[DrawnRow], x: float, y: float) -> tuple[list[str], float, float]:
    """Labels, followed by the values in cells."""
    if not rows:
        return [], x, y
    labels = [_cut(row.label, LABEL) for row in rows]
    left = max(map(len, labels)) * CHARACTER + 8
    parts: list[str] = []
    right = x
    cells = [[_short(value, 9) for value in row.values] for row in rows]
    cell = max(20.0, max(len(text) for texts in cells for text in texts) * CHARACTER + 8)
    for row, label, texts in zip(rows, labels, cells, strict=True):
        parts.append(_text(x, y + 15, label, weight="bold" if row.result else "normal", title=row.label))
        for place, text in enumerate(texts):
            at = x + left + place * (cell + 2)
            parts.append(_box(at, y, cell, 20, RESULT if row.result else CELL, LINE))
            parts.append(_text(at + cell / 2, y + 14.5, text, anchor="middle"))
        right = max(right, x + left + len(texts) * (cell + 2))
        y += 24
    return parts, right, y


def _short(value: Value, most: int) -> str:
    """A value in a few characters."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, float):
        return f"{value:.3g}"
    text = "–" if value is None else str(value)
    return _cut(text, most) if text.strip() else "␣" * len(text) or "∅"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _safe(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return escape("".join(character if character.isprintable() else "·" for character in text), {'"': "&quot;"})


def _box(x: float, y: float, width: float, height: float, fill: str, line: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="{line}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = SIZE,
    colour: str = INK,
    weight: str = "normal",
    anchor: str = "start",
    turn: int = 0,
    title: str = "",
) -> str:
    turned = f' transform="rotate({turn} {x + 3.5:.1f} {y:.1f}) translate(3.5 0)"' if turn else ""
    hover = f"<title>{_safe(title)}</title>" if title and title != text else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" font-weight="{weight}" '
        f'text-anchor="{anchor}"{turned} xml:space="preserve">{_safe(text)}{hover}</text>'
    )
