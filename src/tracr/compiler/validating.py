"""Lists the expressions of a program that cannot be compiled, with the reasons; an empty list if all can.

The checks are those of the compiler. A sub-expression that does not read the tokens means the same for every
vocabulary. It is compiled by itself, for the shortest input it accepts: if that is refused, it is always refused. All
such sub-expressions are compiled together first, and one by one only if that is refused. If an input is given, the
interpreter runs it, and the compiler tries the program for the tokens and the length of that input.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from tracr.compiler.frontend.infer import accepted_lengths
from tracr.compiler.frontend.trace import Outputs, trace
from tracr.compiler.pipeline import compile_program
from tracr.errors import CompileError, ExpressionError, TracrError, TracrWarning
from tracr.ir.options import Options, as_vocabulary
from tracr.rasp.expressions import RASPExpr, Selector, SelectorWidth, SOp, Tokens
from tracr.rasp.interpreter import evaluate
from tracr.rasp.traversal import topological
from tracr.values import Value

__all__ = ["TracrUnsupportedExpr", "dynamic_validate", "static_validate", "validate"]


@dataclass(frozen=True)
class TracrUnsupportedExpr:
    """An expression that cannot be compiled, the reason, and what to write instead."""

    expr: RASPExpr
    reason: str
    hint: str = ""


def validate(program: SOp, xs: Sequence[Value] | None = None) -> list[TracrUnsupportedExpr]:
    """The expressions that cannot be compiled for any vocabulary or, if `xs` is given, for its tokens and length.

    >>> from tracr.rasp import rasp
    >>> everywhere = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.TRUE)
    >>> mean = rasp.Aggregate(everywhere, rasp.tokens).named("mean")
    >>> validate(mean, [1, 2])
    []
    >>> [found.reason for found in validate(mean, "ab")]
    ["position 0 selects several values, not all numbers ('a', 'b'): they have no mean"]
    """
    if xs is None or not len(xs) or not isinstance(program, SOp):
        return static_validate(program)
    dynamic = dynamic_validate(program, xs)
    if not dynamic:
        return []  # it compiles for these tokens: it is not refused for every vocabulary
    static = static_validate(program)
    known = {entry.expr for entry in static}
    return static + [entry for entry in dynamic if entry.expr not in known]


def static_validate(program: SOp) -> list[TracrUnsupportedExpr]:
    """The expressions that cannot be compiled for any vocabulary and any maximum length.

    >>> from tracr.rasp import rasp
    >>> [found.reason for found in static_validate(rasp.numerical(rasp.Full("a")))]
    ["is annotated numerical but takes values that are not numbers: {'a'}"]
    """
    if not isinstance(program, RASPExpr):
        raise ExpressionError(
            f"only a RASP expression can be validated, not {program!r}", hint="build one with tracr.rasp"
        )
    if isinstance(program, Selector):
        hint = "rasp.SelectorWidth or rasp.Aggregate make an s-op of a selector"
        return [TracrUnsupportedExpr(program, "is a selector, and only an s-op can be compiled", hint)]
    try:
        length, _ = accepted_lengths(trace({program.name: program}), sys.maxsize)
    except CompileError as error:
        return [_entry(program, error)]
    options = Options(("token",), length, level=0)
    sops = {expr: _as_sop(expr) for expr in _without_tokens(program)}
    if not sops or _refusal({str(number): sop for number, sop in enumerate(sops.values())}, options) is None:
        return []
    found: dict[RASPExpr, TracrUnsupportedExpr] = {}
    for expr, sop in sops.items():
        refusal = _refusal({sop.name: sop}, options)
        if refusal is not None:
            entry = _entry(expr, refusal)
            found.setdefault(entry.expr, entry)
    return list(found.values())


def dynamic_validate(program: SOp, xs: Sequence[Value] | None = None) -> list[TracrUnsupportedExpr]:
    """The expressions that fail on the input `xs`, or cannot be compiled for its tokens and its length."""
    if xs is None or not len(xs):
        return []
    vocab = as_vocabulary(list(xs))
    bos, pad = (_unused(name, vocab) for name in ("bos", "pad"))
    refusal = _refusal({program.name: program}, Options(vocab, len(xs), level=0, bos=bos, pad=pad))
    errors = [] if refusal is None else [refusal]
    try:
        evaluate(program, xs)
    except TracrError as error:
        errors.append(error)
    found: dict[RASPExpr, TracrUnsupportedExpr] = {}
    for problem in errors:
        entry = _entry(program, problem)
        found.setdefault(entry.expr, entry)
    return list(found.values())


def _unused(name: str, vocab: tuple[Value, ...]) -> str:
    while name in vocab:
        name += "_"
    return name


def _refusal(outputs: Outputs, options: Options) -> TracrError | None:
    """The error of the compiler, or `None`; warnings are ignored here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracrWarning)
        try:
            compile_program(outputs, options)
        except TracrError as error:
            return error
    return None


def _entry(program: RASPExpr, error: TracrError) -> TracrUnsupportedExpr:
    """The sub-expression an error is about, found by its text."""
    told = error.diagnostic
    culprits = (expr for expr in topological([program]) if repr(expr) == told.expression)
    return TracrUnsupportedExpr(next(culprits, program), told.what, told.hint)


def _as_sop(expr: RASPExpr) -> SOp:
    """The s-op that is compiled to try an expression: itself, or the width of a selector."""
    sop = SelectorWidth(expr) if isinstance(expr, Selector) else expr
    assert isinstance(sop, SOp)
    return sop


def _without_tokens(program: RASPExpr) -> list[RASPExpr]:
    """The largest sub-expressions that do not read the tokens."""
    reads_tokens: dict[RASPExpr, bool] = {}
    for expr in topological([program]):
        reads_tokens[expr] = isinstance(expr, Tokens) or any(reads_tokens[child] for child in expr.children)
    readers = [expr for expr, reads in reads_tokens.items() if reads]
    largest = [child for expr in readers for child in expr.children if not reads_tokens[child]]
    return list(dict.fromkeys([] if reads_tokens[program] else [program]) | dict.fromkeys(largest))
