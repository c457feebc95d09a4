"""Functions stay small enough to be read at once: a limit on their branches, counted as `radon cc` counts them.

Ruff's own count (C901, PLR0912) leaves out conditions inside expressions, which are what makes a function of this
package hard to read; its limits in pyproject.toml hold statements and branches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracr

pytestmark = pytest.mark.repository

SOURCES = Path(tracr.__file__).parent
LIMIT = 15
LARGER: dict[str, str] = {}
"""Functions that may be larger, and why."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def branches(node: ast.AST) -> int:
    """The decisions that a node adds by itself."""
    match node:
        case ast.Try() | ast.TryStar():
            return len(node.handlers) + bool(node.orelse)
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.If() | ast.IfExp() | ast.Assert():
            return 1
        case ast.For() | ast.While() | ast.AsyncFor():
            return 1 + bool(node.orelse)
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.Match():
            wildcard = any(isinstance(case.pattern, ast.MatchAs) and not case.pattern.pattern for case in node.cases)
            return len(node.cases) - wildcard
        case _:
            return 0


def complexity(function: ast.AST) -> int:
    """One, and one for each decision; functions inside count by themselves."""
    return 1 + sum(map(decisions, ast.iter_child_nodes(function)))


def decisions(node: ast.AST) -> int:
    """The decisions in a node."""
    if isinstance(node, FUNCTIONS):
        return 0
    return branches(node) + sum(map(decisions, ast.iter_child_nodes(node)))


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The functions and methods of a module, those inside others too, by their names."""
    for node in ast.iter_child_nodes(tree):
        inside = f"{prefix}{node.name}." if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else prefix
        if isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
        yield from functions(node, inside)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x", 1),
        ("return x if x and y or z else w", 4),
        ("return [a for b in c if d for a in b]", 4),
        ("for a in b:\n  assert a\nelse:\n  pass", 4),
        ("try:\n  f()\nexcept A:\n  pass\nexcept B:\n  pass", 3),
        ("match x:\n  case 1:\n    pass\n  case _:\n    pass", 2),
        ("def g():\n  return 1 if x else 2\nreturn g", 1),
    ],
)
def test_counting(body: str, expected: int) -> None:
    """As radon counts."""
    text = "def f():\n" + "\n".join(f"  {line}" for line in body.splitlines())
    assert complexity(ast.parse(text).body[0]) == expected


def test_no_function_is_too_complex() -> None:
    """But for those that are listed, which still need to be."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            if (count := complexity(function)) > LIMIT:
                found[f"{path.relative_to(SOURCES).as_posix()}: {name}"] = count
    assert {name: count for name, count in found.items() if name not in LARGER} == {}
    assert found.keys() == LARGER.keys()
