"""The page of the example scripts and `.rasp` files."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["scripts_page"]

HEAD = """# Example scripts

Scripts to start from. Each runs by itself, from a clone of the repository: `python examples/NAME.py`.
"""


def scripts_page(folder: Path) -> str:
    """The scripts of a folder with their docstrings, and the programs of its folder `rasp`."""
    parts = [HEAD]
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        told = (ast.get_docstring(ast.parse(text)) or "").strip()
        parts.append(f"## {path.name}\n\n{told}\n\n{_folded(path.name, 'python', text)}")
    parts.append("## Programs in RASP's own notation\n\n`tracr run NAME.rasp INPUT` runs them.")
    for path in sorted((folder / "rasp").glob("*.rasp")):
        parts.append(_folded(path.name, "text", path.read_text(encoding="utf-8")))
    return "\n\n".join(parts) + "\n"


def _folded(name: str, language: str, text: str) -> str:
    block = f"```{language}\n{text.rstrip()}\n```"
    return f'??? example "{name}"\n\n' + "\n".join(f"    {line}".rstrip() for line in block.splitlines())
