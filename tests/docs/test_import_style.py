"""One import style in README.md, the documentation, the examples and the notebooks.

`import tracr`, then the parts as modules: `from tracr.rasp import rasp, programs`, `from tracr import lab, zoo`. Names
are imported only from modules further inside, such as `tracr.lab.methods`.
"""

from __future__ import annotations

import ast
import json
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHERS_CODE = {"extending.md"}  # code of the package itself, which imports names
FILES = [
    ROOT / "README.md",
    *sorted(one for one in (ROOT / "docs").rglob("*.md") if one.name not in OTHERS_CODE),
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "examples").glob("*.ipynb")),
]
LANGUAGE = ("tracr.rasp.rasp", "tracr.rasp.programs")
STATEMENT = re.compile(r"^ *(?:>>> |\.\.\. )? *((?:from tracr[\w.]* import|import tracr)[^;#\n`]*)$", re.MULTILINE)


def statements(path: Path) -> Iterator[str]:
    """The statements of a file that import from tracr."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    if path.suffix == ".py":
        nodes = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Import | ast.ImportFrom)]
        text = "\n".join(map(ast.unparse, nodes))
    yield from (match[1].strip() for match in STATEMENT.finditer(text))


def is_in_style(statement: str) -> bool:
    """Whether a statement imports as this project writes it."""
    (node,) = ast.parse(statement).body
    if isinstance(node, ast.Import):
        return all(one.name == "tracr" and one.asname is None for one in node.names if "tracr" in one.name)
    assert isinstance(node, ast.ImportFrom)
    assert node.module
    if node.module.count(".") > 1:
        return node.module not in LANGUAGE
    found: dict[str, object] = {}
    exec(statement, {}, found)
    modules = all(isinstance(value, types.ModuleType) for value in found.values())
    return modules and not (node.module == "tracr" and "rasp" in found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_imports_are_written_in_one_style(path: Path) -> None:
    """A reader who copies from two places sees the same names."""
    assert [one for one in statements(path) if not is_in_style(one)] == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import tracr", True),
        ("from tracr.rasp import programs, rasp", True),
        ("from tracr import lab, zoo", True),
        ("from tracr.lab.methods import run_method", True),
        ("from tracr import rasp", False),
        ("from tracr import compile", False),
        ("from tracr.rasp.rasp import Select", False),
        ("from tracr.rasp.programs import EXAMPLES", False),
        ("from tracr.zoo import Entry", False),
        ("import tracr.zoo", False),
        ("import tracr as t", False),
    ],
)
def test_the_style(statement: str, expected: bool) -> None:
    assert is_in_style(statement) == expected


def test_statements_are_found(tmp_path: Path) -> None:
    """In examples of pages, in scripts and in notebooks."""
    (tmp_path / "page.md").write_text("Text\n\n    >>> import tracr\n    >>> from tracr import rasp\n")
    (tmp_path / "script.py").write_text("def main():\n    from tracr.zoo import (\n        Entry)\n")
    cell = {"cell_type": "code", "source": ["x = 1\n", "from tracr import lab\n"]}
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert list(statements(tmp_path / "page.md")) == ["import tracr", "from tracr import rasp"]
    assert list(statements(tmp_path / "script.py")) == ["from tracr.zoo import Entry"]
    assert list(statements(tmp_path / "book.ipynb")) == ["from tracr import lab"]
