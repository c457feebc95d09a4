"""The tabulated program as text: one line for every s-op and selector, selectors directly before their first reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracr.ir.ops import Op
from tracr.ir.program import Program
from tracr.ir.selectors import CompositeNode, Selector
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.function_text import function_text
from tracr.rasp.functions import Composition
from tracr.rasp.lambdas import is_lambda, written
from tracr.viz.explorer.source_text import SourceTexts

__all__ = ["Line", "listing"]

NAMED_SUFFIX = re.compile(r"\.named\(.*\)$", re.DOTALL)
SELECTOR_SIGNS = {"and": "&", "or": "|"}
SELECT = re.compile(r"Select\((.*), [^,]+, [^,]+\)", re.DOTALL)
SIGN = r"(?:[=!<>]=|[-+*/%<>]|//|\*\*|in|and|or)"
ONE_STEP = re.compile(rf"([-+]|\w+ |(?:[\d.]+|'[^']*') {SIGN} )?x( {SIGN} .+)?")  # x > 0, 3 - x, -x, not x
STEPS = " then "  # between the functions that the compiler merged


@dataclass(frozen=True)
class Line:
    """One line: the s-op or selector it defines, its text, and its place in the source file.

    `row` is the line of the file it was written on, `span` its first character and the one after its last; `None` if
    they are not known.
    """

    kind: str
    id: int
    label: str
    text: str
    row: int | None
    span: tuple[int, int] | None


def listing(program: Program, expressions: Sequence[RASPExpr], source: str = "") -> list[Line]:
    """The lines of a program; `source` is its text. A `.rasp` program appears in its own words.

    A loaded model has no expressions: its lambdas appear as formulas in x and y.

    >>> import tracr
    >>> from tracr.rasp.programs import EXAMPLES
    >>> model = tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 5)
    >>> print("\\n".join(f"{line.label} = {line.text}" for line in listing(model.program, model.expressions)))
    indices = the positions
    tokens = the input
    is_x = Map(x == 'x', tokens)
    prevs = Select(indices, indices, Comparison.LEQ)
    frac_prevs = Aggregate(prevs, is_x, default=0)
    """
    places = SourceTexts.of(program, expressions, source)
    lines: list[Line] = []

    def add(kind: str, number: int, label: str, origin: str, text: str) -> None:
        words = places.words(number, origin) or text
        lines.append(Line(kind, number, label, words, places.row(origin), places.span(origin)))

    done: set[int] = set()
    for node in program.sops.values():
        for selector in (part for number in node.op.selectors for part in program.parts(number)):
            if selector.id not in done:
                done.add(selector.id)
                text = _selector_text(program, selector, expressions)
                add("selector", selector.id, selector.label, selector.origin, text)
        names = _Written(program, expressions, node.id)
        text = _sentence(node.op, names) or node.op.text(names, node.domain)
        add("sop", node.id, node.label, node.origin, text)
    return lines


def _sentence(op: Op, names: _Written) -> str | None:
    """The text of a function in several steps.

    The steps of a function of one s-op are written around it. Those of two s-ops do not say which one they are applied
    to: the text is a sentence.
    """
    steps = names.function(getattr(op, "function", "")).split(STEPS)
    if len(steps) == 1:
        return None
    inputs = [names.sop(number) for number in op.inputs]
    one = _around(inputs[0], steps) if len(inputs) == 1 else None
    return one or f"a function of {' and '.join(inputs)}"


def _around(name: str, steps: Sequence[str]) -> str | None:
    """Steps such as `x > 0` and `not x`, applied to a name one after the other; `None` if one has another form.

    >>> _around("hist", ["x > 0", "not x"]), _around("hist", ["lambda n: n"])
    ('not (hist > 0)', None)
    """
    text = name
    for step in steps:
        inner = f"({text})" if " " in text else text
        found = ONE_STEP.fullmatch(step)
        if found is None:
            return None
        text = f"{found[1] or ''}{inner}{found[2] or ''}"
    return text


@dataclass(frozen=True)
class _Written:
    """The names of an operation's inputs in a line of the listing."""

    program: Program
    expressions: Sequence[RASPExpr]
    number: int

    def sop(self, number: int) -> str:
        return self.program.sops[number].label

    def selector(self, number: int) -> str:
        return self.program.selectors[number].label

    def function(self, text: str) -> str:
        return _function(text, self.expressions, self.number)


def _function(text: str, expressions: Sequence[RASPExpr], number: int) -> str:
    """The text of a node's function; lambdas as they were written, unless the function was composed with others."""
    expr = expressions[number] if number < len(expressions) else None
    function = getattr(expr, "f", None) or getattr(expr, "predicate", None)
    parts = function.functions() if isinstance(function, Composition) else [function]
    own = "<lambda>" in text or function_text(function) == text
    return written(function) if own and any(map(is_lambda, parts)) else text


def _selector_text(program: Program, selector: Selector, expressions: Sequence[RASPExpr]) -> str:
    if isinstance(selector, CompositeNode):
        parts = [program.selectors[part].label for part in selector.parts]
        return f"~{parts[0]}" if selector.kind == "not" else f" {SELECTOR_SIGNS[selector.kind]} ".join(parts)
    source = NAMED_SUFFIX.sub("", selector.source)
    plain = SELECT.fullmatch(source)
    if plain is None:
        return source
    predicate = _function(plain[1], expressions, selector.id)
    return f"Select({program.sops[selector.keys].label}, {program.sops[selector.queries].label}, {predicate})"
