"""Prints values after a definition, with the running example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracr.rasp.attention import Selector
from tracr.rasp.elementwise import SOp
from tracr.text.printer import texts_of
from tracr.text.runner import Runner
from tracr.text.scope import Function, Native
from tracr.text.values import Result, kind_of, literal, printed, shown

__all__ = ["definition", "matrix", "result"]

LONGEST_SHOWN = 2_000  # most characters of a value


def definition(runner: Runner, value: Any, name: str = "") -> str:
    """The text shown for a value; for an expression, with its running example."""
    if isinstance(value, Result):
        return result(runner, value)
    if isinstance(value, SOp | Selector):
        return _expression(runner, value, name or _name(value))
    if isinstance(value, Function | Native):
        parameters = value.definition.parameters if isinstance(value, Function) else value.parameters
        return f"     function: {value.name}({', '.join(parameters)})"
    text = literal(value)
    kind = "list" if isinstance(value, list) else "dict" if isinstance(value, dict) else "value"
    return f"     {kind}: {text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + ' ...'}"


def _name(value: SOp | Selector) -> str:
    text = texts_of(value)[value]
    return text if len(text) <= 60 else value.name


def _expression(runner: Runner, value: SOp | Selector, name: str) -> str:
    kind = "selector" if isinstance(value, Selector) else "s-op"
    first = f"     {kind}: {name}"
    if not runner.settings.on(value):
        return first
    example = runner.settings.example(value)
    values = runner.on_example(value)
    if isinstance(value, Selector):
        return f"{first}\n \t Example:\n{matrix(values, list(example))}"
    callee = name if name.isidentifier() else f"({name})"
    return f"{first}\n \t {_sequence(runner, f'{callee}({literal(example)})', list(example), values, 'Example:')}"


def _sequence(runner: Runner, call: str, tokens: list[Any], values: Sequence[Any], before: str) -> str:
    if not values:
        return f"{before} {call} = []"
    if not runner.settings.full_display:
        return f"{before} {call} = {printed(values)}" if call else f"{before}{printed(values)}"
    if len(values) > 1 and all(value == values[0] for value in values):
        short = f"{call} = {printed(values)}" if call else printed(values)
        return f"{before} {short} [skipped full display: identical values]"
    return f"{before}\n \t\tinput:   {_line(tokens)}\n \t\toutput:  {_line(values)}"


def _line(values: Sequence[Any]) -> str:
    return f"{' '.join(map(shown, values))} \t ({kind_of(values)}s)"


def matrix(rows: Sequence[Sequence[bool]], tokens: Sequence[Any]) -> str:
    """A selector as text: a row for each query, a column for each key."""
    texts = [shown(token) for token in tokens]
    width = max(map(len, texts), default=1)
    lines = [f"\t\t{' ' * width}   {' '.join(text.rjust(width) for text in texts)}"]
    for text, row in zip(texts, rows, strict=True):
        cells = " ".join(("1" if cell else "·").rjust(width) for cell in row)
        lines.append(f"\t\t{text.rjust(width)} | {cells}")
    return "\n".join(lines)


def result(runner: Runner, value: Result) -> str:
    """The text shown for the result of an expression on an input."""
    if isinstance(value.expr, Selector):
        return f"\t =\n{matrix(value, value.given)}"
    return f"\t {_sequence(runner, '', list(value.given), value, '= ')}"
