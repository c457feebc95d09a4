"""Notebooks as pages: their texts, their code, and the outputs that are stored in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["notebook_page"]

PICTURES = {"image/png": "data:image/png;base64,"}


def notebook_page(path: Path) -> str:
    """The Markdown of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _cell(cell)]
    note = f"This page is the notebook `examples/{path.name}`, with the outputs stored in it."
    return "\n\n".join([parts[0], f"*{note}*", *parts[1:]]) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [_block("python", source), *(_output(one) for one in cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    """One output: a page or a table, a picture, or a text."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        svg = "".join(data["image/svg+xml"])
        return _html(svg[svg.index("<svg") :])
    for kind, beginning in PICTURES.items():
        if kind in data:
            return f'<p><img alt="Output of the cell above" src="{beginning}{"".join(data[kind]).strip()}"></p>'
    if "text/html" in data:
        return _html("".join(data["text/html"]))
    return _block("text", "".join(output.get("text", data.get("text/plain", ""))))


def _html(text: str) -> str:
    """HTML as one block: an empty line would end it."""
    lines = [line for line in text.splitlines() if line.strip()]
    return '<div class="output">\n' + "\n".join(lines) + "\n</div>"


def _block(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"
