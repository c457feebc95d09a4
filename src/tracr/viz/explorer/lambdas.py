"""The source text of lambdas, read from their file; it says more than `<lambda>`."""

from __future__ import annotations

import ast
import linecache
from types import CodeType, FunctionType
from typing import Any

from tracr.rasp.functions import Composition, function_name
from tracr.viz.explorer.source_text import one_line

__all__ = ["written"]


def written(function: Any) -> str:
    """The source text of a lambda, if its file can be read; the name of any other function.

    >>> written(len)
    'len'
    """
    if isinstance(function, Composition):
        return " then ".join(map(written, function.functions()))
    if not isinstance(function, FunctionType) or function.__name__ != "<lambda>":
        return function_name(function)
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    return one_line(_segment("".join(lines), function.__code__) or "<lambda>")


def _segment(source: str, code: CodeType) -> str | None:
    """The text of the innermost lambda that contains the instructions."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    places = [(line, column, end) for line, last, column, end in code.co_positions() if line == last and column != end]
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and places and all(_inside(node.body, *place) for place in places)
    ]
    if not around:
        return None
    innermost = max(around, key=lambda node: (node.lineno, node.col_offset))
    return ast.get_source_segment(source, innermost)


def _inside(node: ast.expr, line: int | None, column: int | None, end: int | None) -> bool:
    if line is None or column is None or end is None:
        return True
    return (node.lineno, node.col_offset) <= (line, column) and (line, end) <= (
        node.end_lineno or node.lineno,
        node.end_col_offset or 0,
    )
