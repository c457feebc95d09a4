"""The reference interpreter: it defines the meaning of RASP programs, and is written for readability.

`evaluate` computes every sub-expression once. With `causal=True` every selector is masked to key <= query.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tracr.arguments import flag
from tracr.errors import EvaluationError, ExpressionError, InputError, TracrError
from tracr.rasp.annotations import TYPED
from tracr.rasp.expressions import (
    Aggregate,
    ConstantSelector,
    ConstantSOp,
    Full,
    Indices,
    Length,
    Map,
    RASPExpr,
    Select,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
    SequenceMap,
    Tokens,
)
from tracr.rasp.functions import function_name
from tracr.rasp.traversal import topological
from tracr.values import Value, as_value, exact_mean, is_number, short_repr

__all__ = ["CausalEvaluator", "DefaultRASPEvaluator", "evaluate"]

Matrix = list[list[bool]]
Result = Any  # list[Value] for an s-op, Matrix for a selector


class DefaultRASPEvaluator:
    """Evaluates expressions, one input at a time."""

    causal = False

    def evaluate(self, expr: RASPExpr, xs: Sequence[Value]) -> Result:
        """The value of `expr` on the input `xs`: a list for an s-op, rows of booleans for a selector."""
        if not isinstance(expr, RASPExpr):
            raise ExpressionError(
                f"only a RASP expression can be evaluated, not {short_repr(expr)}", hint="build one with tracr.rasp"
            )
        return self.evaluate_all([expr], xs)[expr]

    def evaluate_all(
        self, exprs: Sequence[RASPExpr], xs: Sequence[Value], replaced: Mapping[RASPExpr, Result] | None = None
    ) -> dict[RASPExpr, Result]:
        """The value of every sub-expression of `exprs`; the values in `replaced` are used as given."""
        if not isinstance(xs, Iterable):
            raise InputError(f"an input is a sequence of tokens, not {xs!r}", hint='write "abc" or [1, 2]')
        tokens = [as_value(x, where="an input token") for x in xs]
        results: dict[RASPExpr, Result] = {}
        order = topological(exprs)
        if not tokens and any(expr.annotation(TYPED) is not None for expr in order):
            raise InputError(
                "a program of the textual language needs an input of at least one token", hint='write y("abc")'
            )
        for expr in order:
            if replaced is not None and expr in replaced:
                results[expr] = replaced[expr]
                continue
            results[expr] = self.evaluate_one(expr, tokens, [results[child] for child in expr.children])
        return results

    def evaluate_one(self, expr: RASPExpr, tokens: list[Value], inputs: Sequence[Result]) -> Result:
        """The value of `expr`, given those of its children."""
        result = _evaluate(expr, self, tokens, *inputs)
        if expr.annotation(TYPED):
            check_kinds(expr, result)
        return result

    def select(self, keys: int, rows: Callable[[int], Sequence[bool]]) -> Matrix:
        """The rows of a selector, masked if evaluation is causal."""
        if not self.causal:
            return [list(rows(query)) for query in range(keys)]
        return [[cell and key <= query for key, cell in enumerate(rows(query))] for query in range(keys)]


class CausalEvaluator(DefaultRASPEvaluator):
    """Evaluates with every selector masked to key <= query."""

    causal = True


def evaluate(expr: RASPExpr, xs: Sequence[Value], *, causal: bool = False) -> Result:
    """The value of `expr` on `xs`.

    >>> from tracr.rasp import rasp
    >>> evaluate(rasp.Aggregate(rasp.Select(rasp.indices, 0, rasp.Comparison.EQ), rasp.tokens), "abc")
    ['a', 'a', 'a']
    """
    causal = flag("causal", causal, error=EvaluationError)
    return (CausalEvaluator() if causal else DefaultRASPEvaluator()).evaluate(expr, xs)


def check_kinds(expr: RASPExpr, values: Sequence[Value]) -> None:
    """Refuse values that the textual language has no type for: strings mixed with numbers, or other kinds of values."""
    kinds = {type(value) for value in values}
    if not kinds <= {str, bool, int, float}:
        strange = next(value for value in values if type(value) not in (str, bool, int, float))
        raise EvaluationError(
            f"has the value {strange!r}, which is not a number, string or boolean",
            expression=expr,
            hint="a sequence holds strings, or numbers and booleans",
        )
    if str in kinds and len(kinds) > 1:
        raise EvaluationError(
            f"mixes strings with numbers: {_describe(values[:8])}",
            expression=expr,
            hint="a sequence holds strings only, or numbers and booleans only; aggregate gives the number 0 where "
            'nothing is selected, unless it has a third argument: aggregate(s, x, "")',
        )


def _describe(values: Sequence[object]) -> str:
    return ", ".join(map(short_repr, values))


def _advice(expr: RASPExpr, error: Exception) -> str:
    """A hint for a function that failed; the textual language, which has no Python functions, has its own hints."""
    if expr.annotation(TYPED) is not None:
        return ""
    own = error.diagnostic.hint if isinstance(error, TracrError) else ""
    return own or "let the function return a value (or None) there"


def _call(expr: RASPExpr, f: Callable[..., Any], position: int, *args: Value) -> Value:
    """`f(*args)`; its errors are raised again with the expression, the position and the values."""
    try:
        return as_value(f(*args), where="its result")
    except Exception as error:
        raise EvaluationError(
            f"{function_name(f)} failed at position {position} on {_describe(args)}: {type(error).__name__}: {error}",
            expression=expr,
            hint=_advice(expr, error),
        ) from error


@functools.singledispatch
def _evaluate(expr: RASPExpr, how: DefaultRASPEvaluator, xs: list[Value], *inputs: Result) -> Result:
    raise ExpressionError(f"{expr!r} is not an expression the interpreter knows", hint="use the classes of tracr.rasp")


@_evaluate.register
def _(expr: Tokens, how: DefaultRASPEvaluator, xs: list[Value]) -> list[Value]:
    return list(xs)


@_evaluate.register
def _(expr: Indices, how: DefaultRASPEvaluator, xs: list[Value]) -> list[Value]:
    return list(range(len(xs)))


@_evaluate.register
def _(expr: Length, how: DefaultRASPEvaluator, xs: list[Value]) -> list[Value]:
    if how.causal:
        raise EvaluationError(
            "the length of the input depends on the future, which a causal model does not see",
            expression=expr,
            hint="rasp.indices + 1 is the number of tokens so far",
        )
    return [len(xs)] * len(xs)


@_evaluate.register
def _(expr: Full, how: DefaultRASPEvaluator, xs: list[Value]) -> list[Value]:
    return [expr.fill] * len(xs)


def check_length(expr: ConstantSOp | ConstantSelector, length: int) -> None:
    """Refuse an input whose length is not that of the constant, unless the constant allows any length."""
    own = len(expr.value)
    if expr.check_length and length != own:
        raise InputError(
            f"the constant {expr!r} has values for length {own}, not for an input of length {length}",
            hint=f"give inputs of length {own}, or write the constant as a function of rasp.indices",
        )


@_evaluate.register
def _(expr: ConstantSOp, how: DefaultRASPEvaluator, xs: list[Value]) -> list[Value]:
    check_length(expr, len(xs))
    return [*expr.value[: len(xs)], *[None] * (len(xs) - len(expr.value))]


@_evaluate.register
def _(expr: Map, how: DefaultRASPEvaluator, xs: list[Value], inner: list[Value]) -> list[Value]:
    return [None if x is None else _call(expr, expr.f, i, x) for i, x in enumerate(inner)]


@_evaluate.register
def _(expr: SequenceMap, how: DefaultRASPEvaluator, xs: list[Value], fst: list[Value], snd: list[Value]) -> list[Value]:
    return [
        None if x is None or y is None else _call(expr, expr.f, i, x, y)
        for i, (x, y) in enumerate(zip(fst, snd, strict=True))
    ]


@_evaluate.register
def _(expr: Select, how: DefaultRASPEvaluator, xs: list[Value], keys: list[Value], queries: list[Value]) -> Matrix:
    def row(query: int) -> list[bool]:
        return [bool(_call(expr, expr.predicate, query, key, queries[query])) for key in keys]

    return how.select(len(xs), row)


@_evaluate.register
def _(expr: ConstantSelector, how: DefaultRASPEvaluator, xs: list[Value]) -> Matrix:
    check_length(expr, len(xs))
    behind = [False] * (len(xs) - len(expr.value))

    def row(query: int) -> list[bool]:
        return [*expr.value[query][: len(xs)], *behind] if query < len(expr.value) else [False] * len(xs)

    return how.select(len(xs), row)


@_evaluate.register
def _(expr: SelectorAnd, how: DefaultRASPEvaluator, xs: list[Value], fst: Matrix, snd: Matrix) -> Matrix:
    return [[a and b for a, b in zip(p, q, strict=True)] for p, q in zip(fst, snd, strict=True)]


@_evaluate.register
def _(expr: SelectorOr, how: DefaultRASPEvaluator, xs: list[Value], fst: Matrix, snd: Matrix) -> Matrix:
    return [[a or b for a, b in zip(p, q, strict=True)] for p, q in zip(fst, snd, strict=True)]


@_evaluate.register
def _(expr: SelectorNot, how: DefaultRASPEvaluator, xs: list[Value], inner: Matrix) -> Matrix:
    return how.select(len(xs), lambda query: [not cell for cell in inner[query]])


@_evaluate.register
def _(expr: SelectorWidth, how: DefaultRASPEvaluator, xs: list[Value], selector: Matrix) -> list[Value]:
    return [sum(row) for row in selector]


@_evaluate.register
def _(expr: Aggregate, how: DefaultRASPEvaluator, xs: list[Value], selector: Matrix, sop: list[Value]) -> list[Value]:
    if expr.annotation(TYPED) and all(type(value) is bool for value in sop):
        return [_chosen_boolean(expr, query, sop, row) for query, row in enumerate(selector)]
    return [_aggregate(expr, query, sop, row) for query, row in enumerate(selector)]


def _chosen_boolean(expr: Aggregate, query: int, sop: list[Value], row: list[bool]) -> Value:
    """An aggregate of the textual language, where booleans are not numbers and have no mean."""
    if sum(row) > 1:
        raise EvaluationError(
            f"position {query} selects {sum(row)} booleans: they have no mean",
            expression=expr,
            hint="the mean of indicator(x) is the fraction of positions where x is true",
        )
    return _aggregate(expr, query, sop, row)


def _aggregate(expr: Aggregate, query: int, sop: list[Value], row: list[bool]) -> Value:
    selected = [value for value, chosen in zip(sop, row, strict=True) if chosen]
    if not selected:
        return expr.default
    if len(selected) == 1:
        return selected[0]
    numbers = [value for value in selected if is_number(value)]
    if len(numbers) < len(selected):
        raise EvaluationError(
            f"position {query} selects several values, not all numbers ({_describe(selected[:8])}): they have no mean",
            expression=expr,
            hint="select at most one position per query, or map the values to numbers first",
        )
    try:
        return exact_mean(numbers)
    except OverflowError:
        raise EvaluationError(
            f"position {query} averages numbers too large for a float: {_describe(selected[:8])}",
            expression=expr,
            hint="average smaller numbers",
        ) from None
