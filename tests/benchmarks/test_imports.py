"""Benchmarks stand alone: they import nothing from the tests, and only their own tests load them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[2]


def imported(path: Path) -> Iterator[str]:
    """The first parts of the names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize(("folder", "other"), [("benchmarks", "tests"), ("tests", "benchmarks"), ("src", "tests")])
def test_no_import_across(folder: str, other: str) -> None:
    """Not even inside a function."""
    files = list((ROOT / folder).rglob("*.py"))
    assert len(files) > 10
    assert [path.name for path in files if other in imported(path)] == []
