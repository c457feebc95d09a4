"""Calls the user's functions, once per cell, and turns their results into tables of codes."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.frontend.rules.exact_sums import exact_sums
from tracr.craft.grouping import numbered
from tracr.errors import (
    CompileError,
    Diagnostic,
    ExpressionError,
    FunctionError,
    LimitError,
    TracrError,
    TracrWarning,
)
from tracr.ir.budget import ASKED, COMPARED, DEFAULT, Budget, Growing
from tracr.ir.domains import Codes, Finite, finite, surely_same
from tracr.ir.ops import ERROR, UNREACHED
from tracr.nearness import TWINS, nearly_equal
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.functions import OPERATORS, BinaryOperator, Comparison, Function, function_name
from tracr.values import PLAIN, Value, as_value, is_number, short_repr

__all__ = ["Caller", "Reporter", "column_of", "tabulate", "tabulate_pairs", "tabulate_predicate", "tabulate_sum"]

PURITY_SAMPLE = 8
COMPARED_CELLS = 2**27  # the limit for a built-in comparison, which calls no user function
ADVICE = {False: "return a value (or None) there", True: "use a predicate that answers True or False there"}


@dataclass(frozen=True, eq=False)
class Failure:
    """A call that raised."""

    arguments: tuple[Value, ...]
    error: Exception

    @property
    def hint(self) -> str:
        """What to write instead, if the function returned an object that is not a value."""
        return self.error.diagnostic.hint if isinstance(self.error, ExpressionError) else ""

    def __str__(self) -> str:
        shown = ", ".join(map(short_repr, self.arguments))
        why = self.error.diagnostic.what if isinstance(self.error, TracrError) else self.error
        return f" on {shown}: {type(self.error).__name__}: {why}"


def _called(f: Callable[..., Any], args: tuple[Value, ...]) -> Any:
    """The result of a call; a Failure if it raises."""
    try:
        return f(*args)
    except Exception as error:
        return Failure(args, error)


def _as_result(args: tuple[Value, ...], result: Any) -> Any:
    """The result of a call as a value; a Failure if it is not a value."""
    try:
        return result if isinstance(result, Failure) else as_value(result, where="the result")
    except Exception as error:
        return Failure(args, error)


@dataclass(frozen=True, eq=False)
class FunctionAnswers:
    """The result, or the Failure, for each argument of a function; `distinct[codes[i]]` equals `listed[i]`."""

    listed: list[Any]
    kinds: set[type]
    distinct: list[Any]
    codes: Codes

    @property
    def failures(self) -> list[Failure]:
        """The calls that raised."""
        return [answer for answer in self.distinct if type(answer) is Failure] if Failure in self.kinds else []

    def coded(self, code_of: Callable[[Any], int]) -> Codes:
        """A code for each answer; ERROR for failures."""
        codes = [ERROR if type(answer) is Failure else code_of(answer) for answer in self.distinct]
        return np.array(codes, dtype=np.int32)[self.codes]


@dataclass
class Reporter:
    """Collects the warnings and assumptions of `infer`; in strict mode a warning is a refusal.

    Numbers closer than `near` times the largest are treated as one value, which is recorded as an assumption.
    """

    strict: bool
    near: float = 0.0
    found: list[Diagnostic] = field(default_factory=list)
    assumed: list[Diagnostic] = field(default_factory=list)
    _taken_for_one: set[tuple[Value, Value]] = field(default_factory=set)

    def listed(self, expression: object, values: Iterable[Value], *, ordered: bool = False) -> Finite:
        """The domain of these values."""
        domain = finite(values, ordered=ordered, near=self.near)
        if self.near:
            self._assume_one(expression, domain)
        return domain

    def _assume_one(self, expression: object, domain: Finite) -> None:
        """Record which different values are treated as one, unless this is already recorded."""
        pairs = ((domain.values[code], twin) for code, twins in domain.twins.items() for twin in twins)
        new = [pair for pair in pairs if pair[0] != pair[1] and pair not in self._taken_for_one]
        if not new:
            return
        self._taken_for_one.update(new)
        more = f" (and {len(new) - 1} more such pairs)" if len(new) > 1 else ""
        diagnostic = Diagnostic.about(
            expression,
            f"treats {new[0][1]!r} as {new[0][0]!r}{more}: they differ only by rounding",
            "on an input with such a value the model may differ from the interpreter; round the numbers, "
            "compute them with operators instead of functions, or pass strict=True to refuse",
        )
        self.assumed.append(diagnostic)
        warnings.warn(str(diagnostic), TracrWarning, stacklevel=_callers_level())

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
    budget: Budget = field(default_factory=lambda: Budget(DEFAULT))

    def results(self, *columns: Sequence[Value]) -> list[Any]:
        """The unchecked results of the function on all rows of arguments; refused if they take too much memory."""
        results: list[Any] = []
        growing = Growing(self.budget, "the function returns large values", self.expression)
        while len(results) < len(columns[0]):
            start, end = len(results), len(results) + growing.chunk
            more = self._returned([column[start:end] for column in columns])
            growing.measure(more)
            results += more
        return results

    def _returned(self, columns: Sequence[Sequence[Value]]) -> list[Any]:
        """The same for a few rows, whatever their size."""
        f = OPERATORS[self.f.symbol] if isinstance(self.f, BinaryOperator) else self.f
        results: list[Any] = []
        left = [iter(column) for column in columns]
        while len(results) < len(columns[0]):
            with suppress(Exception):  # up to the first call that raises; that call is repeated
                results.extend(map(f, *left))
            if len(results) < len(columns[0]):
                results.append(_called(f, tuple(column[len(results)] for column in columns)))
        return results

    def __call__(self, *columns: Sequence[Value]) -> FunctionAnswers:
        """The answers of the function on all rows of arguments."""
        results = self.results(*columns)
        kinds = set(map(type, results))
        if kinds <= PLAIN.keys():
            distinct, codes = numbered(results)
            if all(PLAIN[type(value)](value) for value in distinct):
                return FunctionAnswers(results, kinds, distinct, codes)
        values = list(map(_as_result, zip(*columns, strict=True), results))
        return FunctionAnswers(values, set(map(type, values)), *numbered(values))

    def check_purity(self, answers: FunctionAnswers, *columns: Sequence[Value]) -> None:
        """Call the function again on a sample, and warn if an answer differs."""
        sample = [column[:PURITY_SAMPLE] for column in columns]
        results = self._returned(sample)
        if PLAIN.keys() >= set(map(type, results)) and results == answers.listed[: len(results)]:
            return
        for args, once, result in zip(zip(*sample, strict=True), answers.listed, results, strict=False):
            again = _as_result(args, result)
            both = isinstance(once, Failure) and isinstance(again, Failure)
            if not both and once != again:
                self.reporter.warn(
                    self.expression,
                    f"{function_name(self.f)}{args!r} returned {once!r}, then {again!r}",
                    "a RASP function must give the same result whenever it gets the same values",
                )
                return

    def report(self, failures: Sequence[Failure]) -> None:
        """Report calls that raised: an error if an input surely leads to one, else a warning."""
        if not failures:
            return
        name = function_name(self.f)
        shown = "; ".join(f"{name}{failure}" for failure in failures[:3])
        more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
        if self.reachable:
            raise FunctionError(
                f"the function raises on values that inputs take: {shown}{more}",
                expression=self.expression,
                hint=failures[0].hint or ADVICE[self.predicate],
            )
        self.reporter.warn(
            self.expression,
            f"the function raises on values that perhaps no input takes: {shown}{more}",
            "if an input does lead there its output is unspecified; " + ADVICE[self.predicate],
        )

    def check_twins(self, answer: Any, others: Sequence[Any], arguments: Sequence[tuple[Value, ...]]) -> list[Any]:
        """Refuse a function that tells equal arguments (1, 1.0, True) apart; else return the answers for one value.

        Arguments that differ only by rounding are treated as one: the answer for the simplest counts.
        """
        failed, same = isinstance(answer, Failure), []
        for args, other in zip(arguments, others, strict=True):
            equal = args == arguments[0]
            if isinstance(other, Failure) != failed or (not failed and self.told(other) != self.told(answer)):
                if not equal:
                    same += [other] if _nearly(answer, other) else []
                    continue
                raise CompileError(
                    f"{function_name(self.f)} tells equal values apart: {arguments[0]!r} gives {self.told(answer)!r}, "
                    f"{args!r} gives {self.told(other)!r}, and both can occur",
                    expression=self.expression,
                    hint="values are compared with ==; convert first, e.g. int(x) or float(x)",
                )
            same += [] if isinstance(other, Failure) else [other]
        return same

    def told(self, answer: Any) -> Any:
        """The part of an answer that matters: for a predicate, whether it is true."""
        return bool(answer) if self.predicate and not isinstance(answer, Failure) else answer


def _nearly(first: Any, second: Any) -> bool:
    """Whether two answers are numbers that differ only by rounding."""
    numbers = is_number(first) and is_number(second)
    return numbers and bool(nearly_equal(first, second, TWINS, scale=max(abs(first), abs(second))))


Axes = Sequence[tuple[Finite, Codes]]  # for each argument of a function its domain, and the codes to call it on


def _call(caller: Caller, axes: Axes) -> tuple[FunctionAnswers, list[Any]]:
    """The answers of a function, and its results for the twins of its arguments, which must be the same."""
    columns = [domain.listed(codes) for domain, codes in axes]
    answers = caller(*columns)
    caller.check_purity(answers, *columns)
    if not any(domain.twins for domain, _ in axes):
        return answers, []
    several = np.zeros(len(answers.listed), dtype=bool)
    for domain, codes in axes:
        has_twins = np.zeros(len(domain), dtype=bool)
        has_twins[list(domain.twins)] = True
        several |= has_twins[codes]
    places = several.nonzero()[0].tolist()
    if not places:
        return answers, []
    arguments = [
        list(itertools.product(*(domain.representatives(codes[place]) for domain, codes in axes))) for place in places
    ]
    others = iter(caller(*zip(*itertools.chain(*arguments), strict=True)).listed)
    twins: list[Any] = []
    for place, equal in zip(places, arguments, strict=True):
        own = [next(others) for _ in equal]
        twins += caller.check_twins(answers.listed[place], own, equal)
    return answers, twins


def _finish(caller: Caller, answers: FunctionAnswers, twins: list[Any]) -> tuple[Codes, Finite]:
    """Codes for the results and the domain they form."""
    failures = answers.failures
    caller.report(failures)
    if len(failures) == len(answers.distinct):
        raise CompileError(
            f"the function raises on every value it can get: {function_name(caller.f)}{failures[0]}",
            expression=caller.expression,
            hint=failures[0].hint or ADVICE[caller.predicate],
        )
    values = answers.distinct if surely_same(answers.kinds - {Failure}, answers.distinct) else answers.listed
    kept = itertools.chain((value for value in values if type(value) is not Failure), twins)
    domain = caller.reporter.listed(caller.expression, kept)
    return answers.coded(domain.index.__getitem__), domain


def tabulate(caller: Caller, inner: Finite, occurring: Codes) -> tuple[Codes, Finite]:
    """The table of a function of one value; `None` stays `None`. Only the occurring codes are tabulated."""
    codes = occurring[occurring != inner.index.get(None, -1)]
    answers, twins = _call(caller, [(inner, codes)])
    return _table(caller, (len(inner),), (codes,), answers, twins, (occurring,))


def tabulate_pairs(
    caller: Caller, fst: Finite, snd: Finite, pairs: tuple[Codes, Codes], *, keep_none: bool = False
) -> tuple[Codes, Finite]:
    """The table of a function of two values on the pairs that can occur; `None` if either is, unless `keep_none`."""
    rows, columns = pairs
    if not keep_none and (fst.maybe_none or snd.maybe_none):
        called = (rows != fst.index.get(None, -1)) & (columns != snd.index.get(None, -1))
        rows, columns = rows[called], columns[called]
    answers, twins = _call(caller, [(fst, rows), (snd, columns)])
    return _table(caller, (len(fst), len(snd)), (rows, columns), answers, twins, pairs)


def tabulate_sum(
    caller: Caller, fst: Finite, snd: Finite, pairs: tuple[Codes, Codes], factors: tuple[float, ...]
) -> tuple[Codes, Finite]:
    """The table of a weighted sum of two numbers, rounded as in the interpreter.

    A sum of integers with integer factors is an integer; a whole number that may be an integer or a float has twins.
    """
    rows, columns = pairs
    if fst.maybe_none or snd.maybe_none:
        called = (rows != fst.index.get(None, -1)) & (columns != snd.index.get(None, -1))
        rows, columns = rows[called], columns[called]
    silent = len(rows) < len(pairs[0])
    numbers, codes = np.unique(exact_sums(fst, snd, (rows, columns), factors), return_inverse=True)
    values, twins = _typed_sums(numbers.tolist(), (fst, snd), factors)
    listed = [*values, *twins, *([None] if silent else [])]
    domain = caller.reporter.listed(caller.expression, listed, ordered=True)
    if caller.reporter.near:
        codes = np.array([domain.index[value] for value in values], dtype=codes.dtype)[codes]
    table = np.full((len(fst), len(snd)), UNREACHED, dtype=np.int32)
    if silent:
        table[pairs] = domain.index[None]
    table[rows, columns] = codes
    return table, domain


def _typed_sums(
    sums: list[float], domains: Sequence[Finite], factors: Sequence[float]
) -> tuple[list[Value], list[Value]]:
    """The sums with the program's types, integers or floats, and the integers that some floats may be as well."""
    kinds = [d.kinds.union(type(twin) for twins in d.twins.values() for twin in twins) for d in domains]
    integers = all(isinstance(factor, int) for factor in factors)
    may_be_integer = integers and all(kind != {float} for kind in kinds)
    may_be_float = not integers or any(float in kind for kind in kinds)
    if not may_be_integer:
        return list(sums), []
    if not may_be_float:
        return [int(x) for x in sums], []
    return list(sums), [int(x) for x in sums if x.is_integer()]


def _table(
    caller: Caller,
    shape: tuple[int, ...],
    where: tuple[Codes, ...],
    answers: FunctionAnswers,
    twins: list[Any],
    occurring: tuple[Codes, ...],
) -> tuple[Codes, Finite]:
    """Put the results into a table; occurring cells that were not called hold `None`."""
    silent = len(occurring[0]) > len(where[0])
    if silent and not answers.listed:
        domain, codes = finite([None]), np.zeros(0, np.int32)
    else:
        codes, domain = _finish(caller, answers, [*twins, None] if silent else twins)
    table = np.full(shape, UNREACHED, dtype=np.int32)
    if silent:
        table[occurring] = domain.index[None]
    table[where] = codes
    return table, domain


def tabulate_predicate(
    caller: Caller, keys: Finite, queries: Finite, met: Callable[[], NDArray[np.bool_]], limit: int, budget: Budget
) -> NDArray[np.int8]:
    """`table[query, key]`: 1 selected, 0 not, ERROR where the predicate raises. `None` is passed on.

    Raising is an error on the cells that some input has surely `met`.
    """
    built_in = isinstance(caller.f, Comparison) and not (keys.maybe_none or queries.maybe_none)
    cells, what = len(keys) * len(queries), f"compares {len(keys):,} keys with {len(queries):,} queries"
    if cells > (max(limit, COMPARED_CELLS) if built_in else limit):
        raise LimitError(
            what,
            expression=caller.expression,
            hint=f"map keys and queries to fewer values first, or raise max_cells (now {limit:,})",
        )
    budget.need((COMPARED if built_in else ASKED) * cells, what, caller.expression)
    if isinstance(caller.f, Comparison):
        fast = _compare(caller.f, keys, queries)
        if fast is not None:
            return fast
    answers, _ = _call(caller, [(keys, np.tile(keys.codes, len(queries))), (queries, queries.codes.repeat(len(keys)))])
    table = answers.coded(bool).astype(np.int8).reshape(len(queries), len(keys))
    if answers.failures:
        surely = met() | (table == ERROR).all()
        failed = np.fromiter(answers.listed, dtype=object, count=table.size).reshape(table.shape)
        replace(caller, reachable=True).report(failed[surely & (table == ERROR)].tolist())
        caller.report(answers.failures)
    return table


def _compare(comparison: Comparison, keys: Finite, queries: Finite) -> NDArray[np.int8] | None:
    """A built-in comparison of all keys with all queries; `None` if some values cannot be compared."""
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
    """The values as an array that supports comparison."""
    if domain.numeric and max(map(abs, domain.ends)) < 2**53:
        return domain.numbers
    return domain.column
