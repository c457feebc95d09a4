"""Lambdas as they were written, read from their file; the text says more than `<lambda>`."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Set
from types import FunctionType
from typing import Any

from tracr.rasp.functions import Composition, function_name
from tracr.values import Value

__all__ = ["is_lambda", "lambda_body", "written"]

MOST_CHARACTERS = 90  # most characters of a text
SIMPLE = (bool, int, float, str, type(None))  # captured values that take the place of their names


def is_lambda(function: Any) -> bool:
    """Whether a function is a lambda."""
    return isinstance(function, FunctionType) and function.__name__ == "<lambda>"


def written(function: Any) -> str:
    """The source text of a lambda, if its file can be read; the name of any other function.

    >>> written(len)
    'len'
    """
    if isinstance(function, Composition):
        return " then ".join(map(written, function.functions()))
    if not is_lambda(function):
        return function_name(function)
    source = _source(function)
    node = _lambda(source, function)
    text = " ".join((ast.get_source_segment(source, node) or "").split()) if node else ""
    text = text or "<lambda>"
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def lambda_body(function: FunctionType, parameters: tuple[str, ...]) -> str | None:
    """The body of a lambda over other names of its parameters; `None` if its source cannot be read, or misleads.

    Values that the lambda captured, and defaults of its last parameters, take the place of their names.

    >>> step = 2
    >>> lambda_body(lambda key, query: key == query - step, ("x", "y"))
    'x == y - 2'
    """
    node = _lambda(_source(function), function)
    if node is None or node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
        return None
    own = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    defaults = function.__defaults__ or ()
    given = dict(zip(own[len(own) - len(defaults) :], defaults, strict=True))
    free = [name for name in own if name not in given]
    if len(free) > len(parameters) or not all(isinstance(value, SIMPLE) for value in defaults):
        return None
    known = _captured(function) | given
    values = tuple((name, repr(value), value) for name, value in known.items())
    return _body(node, tuple(zip(free, parameters, strict=False)), values, frozenset(parameters))


@functools.lru_cache(maxsize=1024)  # programs are compiled again and again
def _body(
    node: ast.Lambda,
    names: tuple[tuple[str, str], ...],
    values: tuple[tuple[str, str, Value], ...],
    parameters: frozenset[str],
) -> str | None:
    """The body with other names, and values (with their text, which tells 1 and True apart) in place of names."""
    rename, known = dict(names), {name: value for name, _, value in values}
    if _clashes(node.body, parameters, rename.keys() | known.keys()):
        return None
    return ast.unparse(_Renamed(rename, known).visit(ast.parse(ast.unparse(node.body), mode="eval").body))


def _captured(function: FunctionType) -> dict[str, Value]:
    """The simple values of the variables that a function takes from around it."""
    used = function.__code__.co_names
    found = {
        name: function.__globals__[name] for name in used if isinstance(function.__globals__.get(name, used), SIMPLE)
    }
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if isinstance(content, SIMPLE):
            found[name] = content
    return found


def _clashes(body: ast.expr, parameters: Set[str], replaced: Set[str]) -> bool:
    """Whether new names of parameters may mean something else in an expression, or stand inside of a text."""
    parts = list(ast.walk(body))
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    own = any(isinstance(one, ast.arg | ast.comprehension | ast.NamedExpr | ast.JoinedStr) for one in parts)
    return own or bool((names - replaced) & parameters)


class _Renamed(ast.NodeTransformer):
    """Replaces names by other names or by values."""

    def __init__(self, names: dict[str, str], values: dict[str, Value]) -> None:
        self.names, self.values = names, values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A parameter or a captured variable."""
        if node.id in self.names:
            return ast.Name(self.names[node.id], node.ctx)
        return ast.Constant(self.values[node.id]) if node.id in self.values else node  # type: ignore[arg-type]


def _source(function: FunctionType) -> str:
    return "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))


@functools.lru_cache(maxsize=32)
def _lambdas(source: str) -> tuple[ast.Lambda, ...]:
    """The lambdas of a file."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))


def _lambda(source: str, function: FunctionType) -> ast.Lambda | None:
    """The innermost lambda that contains the instructions of a function."""
    line, positions = function.__code__.co_firstlineno, function.__code__.co_positions()
    near = [node for node in _lambdas(source) if node.lineno <= line <= (node.end_lineno or node.lineno)]
    places = [(line, column, end) for line, last, column, end in positions if line == last and column != end]
    around = [node for node in near if places and all(_inside(node.body, *place) for place in places)]
    return max(around, key=lambda node: (node.lineno, node.col_offset)) if around else None


def _inside(node: ast.expr, line: int | None, column: int | None, end: int | None) -> bool:
    if line is None or column is None or end is None:
        return True
    return (node.lineno, node.col_offset) <= (line, column) and (line, end) <= (
        node.end_lineno or node.lineno,
        node.end_col_offset or 0,
    )
