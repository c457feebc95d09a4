"""Draws selectors.svg: the duplicate-safe sort's selector as boxes in a truth table.

python docs/images/selectors.py
"""

from __future__ import annotations

from pathlib import Path

CELL, LEFT, TOP = 92, 150, 78
COLUMNS = ("key < query", "key = query", "key > query")
ROWS = ("earlier", "not earlier")
BOXES = (("#2a78b8", 0, 0, 1, 2, "head 1"), ("#c2571a", 1, 0, 1, 1, "head 2"))  # colour, column, row, columns, rows


def text(x: float, y: float, words: str, size: int = 14, colour: str = "#333", anchor: str = "middle") -> str:
    """A line of text."""
    style = f'font-family="sans-serif" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {style}>{words.replace("<", "&lt;").replace(">", "&gt;")}</text>'


def draw() -> str:
    """The picture."""
    width, height = LEFT + 3 * CELL + 210, TOP + 2 * CELL + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    ]
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    parts.append(text(LEFT + 1.5 * CELL, 26, "the values", 15))
    parts.append(text(LEFT - 14, TOP - 14, "the positions", 15, anchor="end"))
    for column, label in enumerate(COLUMNS):
        parts.append(text(LEFT + (column + 0.5) * CELL, TOP - 14, label, 13))
        for row in range(2):
            x, y = LEFT + column * CELL, TOP + row * CELL
            parts.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="#f4f4f4" stroke="#bbb"/>')
    for row, label in enumerate(ROWS):
        parts.append(text(LEFT - 14, TOP + (row + 0.5) * CELL + 5, label, 13, anchor="end"))
    for colour, column, row, columns, rows, label in BOXES:
        x, y = LEFT + column * CELL + 5, TOP + row * CELL + 5
        w, h = columns * CELL - 10, rows * CELL - 10
        parts.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="9" fill="{colour}" fill-opacity="0.85"/>')
        parts.append(text(x + w / 2, y + h / 2 + 6, label, 16, "white"))
    note = LEFT + 3 * CELL + 24
    for line, (words, colour) in enumerate(
        (("head 1: less", BOXES[0][0]), ("head 2: equal and earlier", BOXES[1][0]), ("their counts add up", "#333"))
    ):
        parts.append(text(note, TOP + 50 + 28 * line, words, 14, colour, "start"))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    (Path(__file__).parent / "selectors.svg").write_text(draw(), encoding="utf-8")
