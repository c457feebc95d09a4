"""The tabulated program as text: one line for every s-op and selector, selectors directly before their first reader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tracr.ir.program import Program
from tracr.ir.selectors import CompositeNode, Selector
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.function_text import function_text
from tracr.rasp.functions import Composition
from tracr.rasp.lambdas import is_lambda, written

__all__ = ["Line", "listing"]

NAMED_SUFFIX = re.compile(r"\.named\(.*\)$", re.DOTALL)
SELECTOR_SIGNS = {"and": "&", "or": "|"}
SELECT = re.compile(r"Select\((.*), [^,]+, [^,]+\)", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """One line: the s-op or selector it defines, its text, and the line of the source file it was written on."""

    kind: str
    id: int
    label: str
    text: str
    row: int | None


def listing(program: Program, expressions: Sequence[RASPExpr]) -> list[Line]:
    """The lines of a program. A loaded model has no expressions: its lambdas appear as formulas in x and y.

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
    files = Counter(node.origin.rpartition(":")[0] for node in program.sops.values() if node.origin)
    file = files.most_common(1)[0][0] if files else ""
    lines: list[Line] = []
    done: set[int] = set()
    for node in program.sops.values():
        for selector in (part for number in node.op.selectors for part in program.parts(number)):
            if selector.id not in done:
                done.add(selector.id)
                text = _selector_text(program, selector, expressions)
                lines.append(Line("selector", selector.id, selector.label, text, _row(selector.origin, file)))
        text = node.op.text(_Written(program, expressions, node.id), node.domain)
        lines.append(Line("sop", node.id, node.label, text, _row(node.origin, file)))
    return lines


def _row(origin: str, file: str) -> int | None:
    name, _, row = origin.rpartition(":")
    return int(row) if name == file and row.isdigit() else None


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
