"""Calling the user's functions, once per cell, and turning what they return into tables of codes."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Codes, Finite, finite
from tracr.compiler.typed import ERROR, UNREACHED
from tracr.errors import CompileError, Diagnostic, LimitError, TracrError, TracrWarning
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.functions import OPERATORS, BinaryOperator, Comparison, Function, function_name
from tracr.rasp.values import LARGEST, LONGEST, Value, as_value, short_repr

__all__ = ["Caller", "Reporter", "column_of", "tabulate", "tabulate_pairs", "tabulate_predicate", "tabulate_sum"]

PURITY_SAMPLE = 8
COMPARED_CELLS = 2**27  # of a built-in comparison, which calls no function of the user's
ADVICE = {False: "return a value (or None) there", True: "use a predicate that answers True or False there"}
PLAIN = {bool, type(None)}


def _plain(value: Any) -> bool:
    """Whether a result is surely a value: the usual case, told quickly."""
    kind = type(value)
    return kind in PLAIN or (kind is int and -LARGEST < value < LARGEST) or (kind is str and len(value) < LONGEST)


@dataclass(frozen=True)
class Failure:
    """A call that raised."""

    arguments: tuple[Value, ...]
    error: Exception

    def __str__(self) -> str:
        shown = ", ".join(map(short_repr, self.arguments))
        why = self.error.diagnostic.what if isinstance(self.error, TracrError) else self.error
        return f" on {shown}: {type(self.error).__name__}: {why}"


@dataclass
class Reporter:
    """Collects what infer finds out about a program; in strict mode everything is a refusal."""

    strict: bool
    found: list[Diagnostic]

    def warn(self, expression: object, what: str, hint: str) -> None:
        """Record and issue a warning, or refuse."""
        if self.strict:
            raise CompileError(what, expression=expression, hint=f"{hint} (refused because strict=True)")
        diagnostic = Diagnostic.about(expression, what, hint)
        self.found.append(diagnostic)
        warnings.warn(str(diagnostic), TracrWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """The stack level, seen from the caller of this function, of the code that called into this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tracr":
        frame, level = frame.f_back, level + 1
    return level


@dataclass(frozen=True)
class Caller:
    """A user's function with the expression it belongs to."""

    expression: RASPExpr
    f: Function
    reporter: Reporter
    reachable: bool
    predicate: bool = False

    def __call__(self, arguments: Iterable[tuple[Value, ...]]) -> list[Any]:
        """The result, or the Failure, for each tuple of arguments."""
        f = OPERATORS[self.f.symbol] if isinstance(self.f, BinaryOperator) else self.f
        results: list[Any] = []
        for args in arguments:
            try:
                value = f(*args)
                results.append(value if _plain(value) else as_value(value, where="the result"))
            except Exception as error:
                results.append(Failure(args, error))
        return results

    def check_purity(self, arguments: Sequence[tuple[Value, ...]], results: Sequence[Any]) -> None:
        """Call again on a sample; a function that answers differently is not one."""
        for args, once, again in zip(arguments, results, self(arguments), strict=False):
            both = isinstance(once, Failure) and isinstance(again, Failure)
            if not both and once != again:
                self.reporter.warn(
                    self.expression,
                    f"{function_name(self.f)}{args!r} returned {once!r}, then {again!r}",
                    "a RASP function must give the same result whenever it gets the same values",
                )
                return

    def report(self, failures: Sequence[Failure]) -> None:
        """Tell about calls that raised: an error where an input surely leads to one, else a warning."""
        if not failures:
            return
        name = function_name(self.f)
        shown = "; ".join(f"{name}{failure}" for failure in failures[:3])
        more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
        if self.reachable:
            raise CompileError(
                f"the function raises on values that inputs take: {shown}{more}",
                expression=self.expression,
                hint=f"{ADVICE[self.predicate]}, or leave those tokens out of the vocabulary",
            )
        self.reporter.warn(
            self.expression,
            f"the function raises on values that perhaps no input takes: {shown}{more}",
            "if an input does lead there its output is unspecified; " + ADVICE[self.predicate],
        )

    def agree(self, results: Sequence[Any], arguments: Sequence[tuple[Value, ...]]) -> None:
        """Refuse a function that tells equal values (1, 1.0, True) apart."""
        first = results[0]
        for args, result in zip(arguments, results, strict=True):
            failed = isinstance(first, Failure), isinstance(result, Failure)
            if failed[0] != failed[1] or (not failed[0] and result != first):
                raise CompileError(
                    f"{function_name(self.f)} tells equal values apart: {arguments[0]!r} gives {first!r}, "
                    f"{args!r} gives {result!r}, and both can occur",
                    expression=self.expression,
                    hint="values are compared with ==; convert first, e.g. int(x) or float(x)",
                )


def _finish(caller: Caller, results: list[Any], twins: list[Any]) -> tuple[Codes, Finite]:
    """Codes for the results and the domain they form."""
    failures = [result for result in results if isinstance(result, Failure)]
    caller.report(failures)
    values = [result for result in results if not isinstance(result, Failure)] if failures else results
    if not values:
        raise CompileError(
            f"the function raises on every value it can get: {function_name(caller.f)}{failures[0]}",
            expression=caller.expression,
            hint=ADVICE[caller.predicate],
        )
    domain = finite(itertools.chain(values, twins))
    index = domain.index
    codes = (
        [ERROR if isinstance(result, Failure) else index[result] for result in results]
        if failures
        else [index[result] for result in results]
    )
    return np.array(codes, dtype=np.int32), domain


def tabulate(caller: Caller, inner: Finite, occurring: Codes) -> tuple[Codes, Finite]:
    """The table of a function of one value; `None` stays `None`. Only the occurring codes are tabulated."""
    values = inner.values
    codes = [code for code in occurring.tolist() if values[code] is not None]
    arguments = [(values[code],) for code in codes]
    results = caller(arguments)
    caller.check_purity(arguments[:PURITY_SAMPLE], results)
    twins: list[Any] = []
    for code, result in zip(codes, results, strict=True) if inner.twins else ():
        if code in inner.twins:
            every = [(value,) for value in inner.representatives(code)]
            others = caller(every)
            caller.agree([result, *others], [every[0], *every])
            twins += [other for other in others if not isinstance(other, Failure)]
    return _table(caller, (len(inner),), [np.array(codes, dtype=np.int32)], results, twins, [occurring], (inner,))


def tabulate_pairs(
    caller: Caller, fst: Finite, snd: Finite, pairs: tuple[Codes, Codes], limit: int, *, keep_none: bool = False
) -> tuple[Codes, Finite]:
    """The table of a function of two values on the pairs that can occur; `None` if either is, unless `keep_none`."""
    if len(pairs[0]) > limit:
        raise LimitError(
            f"needs a table of {len(pairs[0]):,} pairs of values ({len(fst):,} by {len(snd):,})",
            expression=caller.expression,
            hint=f"map the inputs to fewer values first, or raise max_cells (now {limit:,})",
        )
    first, second = fst.values, snd.values
    cells = [
        (a, b)
        for a, b in zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)
        if keep_none or (first[a] is not None and second[b] is not None)
    ]
    arguments = [(first[a], second[b]) for a, b in cells]
    results = caller(arguments)
    caller.check_purity(arguments[:PURITY_SAMPLE], results)
    twins: list[Any] = []
    if fst.twins or snd.twins:
        for (a, b), result in zip(cells, results, strict=True):
            if a in fst.twins or b in snd.twins:
                every = list(itertools.product(fst.representatives(a), snd.representatives(b)))
                others = caller(every)
                caller.agree([result, *others], [every[0], *every])
                twins += [other for other in others if not isinstance(other, Failure)]
    where = [np.array([a for a, _ in cells], dtype=np.int32), np.array([b for _, b in cells], dtype=np.int32)]
    domains = () if keep_none else (fst, snd)
    return _table(caller, (len(fst), len(snd)), where, results, twins, list(pairs), domains)


def tabulate_sum(
    fst: Finite, snd: Finite, pairs: tuple[Codes, Codes], factors: tuple[float, ...]
) -> tuple[Codes, Finite]:
    """The table of a weighted sum of two numbers, all pairs at once; float64 rounds as Python does.

    A sum of integers with integer factors is an integer; a whole number that may be either becomes twins.
    """
    rows, columns = pairs
    nones = np.array([value is None for value in fst.values])[rows] | np.array([v is None for v in snd.values])[columns]
    rows, columns = rows[~nones], columns[~nones]
    numbers, codes = np.unique(factors[0] * fst.numbers[rows] + factors[1] * snd.numbers[columns], return_inverse=True)
    kinds = [{type(r) is not float for r in (*d.values, *itertools.chain(*d.twins.values()))} for d in (fst, snd)]
    integers = all(isinstance(factor, int) for factor in factors)
    whole = all(True in kind for kind in kinds) and integers
    broken = any(False in kind for kind in kinds) or not integers
    values: list[Value] = [int(x) if whole and not broken else x for x in numbers.tolist()]
    twins = [int(x) for x in numbers.tolist() if x.is_integer()] if whole and broken else []
    domain = finite([*values, *twins, *([None] if nones.any() else [])], ordered=True)
    table = np.full((len(fst), len(snd)), UNREACHED, dtype=np.int32)
    if nones.any():
        table[pairs] = domain.index[None]
    table[rows, columns] = codes
    return table, domain


def _table(
    caller: Caller,
    shape: tuple[int, ...],
    where: list[Codes],
    results: list[Any],
    twins: list[Any],
    occurring: list[Codes],
    domains: tuple[Finite, ...],
) -> tuple[Codes, Finite]:
    """Put the results into a table; occurring cells that were not called hold `None`."""
    silent = len(occurring[0]) > len(where[0])
    if silent and not results:
        domain, codes = finite([None]), np.zeros(0, np.int32)
    else:
        codes, domain = _finish(caller, results, [*twins, None] if silent else twins)
    table = np.full(shape, UNREACHED, dtype=np.int32)
    if silent:
        table[tuple(occurring)] = domain.index[None]
    table[tuple(where)] = codes
    return table, domain


def tabulate_predicate(
    caller: Caller, keys: Finite, queries: Finite, met: Callable[[], NDArray[np.bool_]], limit: int
) -> NDArray[np.int8]:
    """`table[query, key]`: 1 selected, 0 not, ERROR where the predicate raises. `None` is passed on.

    Raising is an error on the cells that some input has surely `met`.
    """
    built_in = isinstance(caller.f, Comparison) and not (keys.maybe_none or queries.maybe_none)
    if len(keys) * len(queries) > (max(limit, COMPARED_CELLS) if built_in else limit):
        raise LimitError(
            f"compares {len(keys):,} keys with {len(queries):,} queries",
            expression=caller.expression,
            hint=f"map keys and queries to fewer values first, or raise max_cells (now {limit:,})",
        )
    if isinstance(caller.f, Comparison):
        fast = _compare(caller.f, keys, queries)
        if fast is not None:
            return fast
    arguments = [(key, query) for query in queries.values for key in keys.values]
    results = caller(arguments)
    caller.check_purity(arguments[:PURITY_SAMPLE], results)
    if keys.twins or queries.twins:
        width = len(keys)
        for q, k in itertools.product(range(len(queries)), range(width)):
            if q in queries.twins or k in keys.twins:
                every = list(itertools.product(keys.representatives(k), queries.representatives(q)))
                chosen = [other if isinstance(other, Failure) else bool(other) for other in caller(every)]
                own = results[q * width + k]
                caller.agree([own if isinstance(own, Failure) else bool(own), *chosen], [every[0], *every])
    failures = [(place, result) for place, result in enumerate(results) if isinstance(result, Failure)]
    if failures:
        surely = met().ravel() | (len(failures) == len(results))
        replace(caller, reachable=True).report([failure for place, failure in failures if surely[place]])
        caller.report([failure for _, failure in failures])
    cells = [ERROR if isinstance(result, Failure) else int(bool(result)) for result in results]
    return np.array(cells, dtype=np.int8).reshape(len(queries), len(keys))


def _compare(comparison: Comparison, keys: Finite, queries: Finite) -> NDArray[np.int8] | None:
    """A built-in comparison of all keys with all queries at once; `None` if some values are not comparable."""
    if keys.maybe_none or queries.maybe_none:
        return None
    if comparison in (Comparison.TRUE, Comparison.FALSE):
        return np.full((len(queries), len(keys)), int(comparison is Comparison.TRUE), dtype=np.int8)
    compare: Callable[..., Any] = OPERATORS[comparison.value]
    columns, rows = column_of(keys)[None, :], column_of(queries)[:, None]
    if comparison in (Comparison.EQ, Comparison.NEQ) and object in (columns.dtype, rows.dtype):
        columns, rows = (
            np.arange(len(keys))[None, :],
            np.array([keys.index.get(v, -1) for v in queries.values])[:, None],
        )
    try:
        return np.asarray(compare(columns, rows)).astype(np.int8)
    except TypeError:
        return None


def column_of(domain: Finite) -> NDArray[Any]:
    """The values as an array that can be compared at once."""
    if domain.numeric and max(map(abs, domain.ends)) < 2**53:
        return domain.numbers
    column = np.empty(len(domain), dtype=object)
    for code, value in enumerate(domain.values):
        column[code] = value
    return column
