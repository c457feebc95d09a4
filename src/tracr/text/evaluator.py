"""Runs a syntax tree: it computes plain values, and builds s-ops and selectors with their places in the text."""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from tracr.errors import EvaluationError, InputError, SourceError
from tracr.rasp.annotations import NAME, TYPED
from tracr.rasp.base import RASPExpr
from tracr.rasp.elementwise import Indices, Length, SOp, Tokens
from tracr.rasp.interpreter import evaluate
from tracr.rasp.traversal import topological
from tracr.text import operators, syntax
from tracr.text.operations import Kept
from tracr.text.parser import FUNCTIONS
from tracr.text.places import Place, Source, Span
from tracr.text.scope import NOTHING, STEPS, VALUES, Allowance, Function, Native, Scope
from tracr.text.values import Items, Misfit, Result, describe, is_atom, size_of
from tracr.text.walk import assigned

__all__ = ["Evaluator", "room_to_recurse", "sequence_of"]

DEPTH = 1_500
LONGEST_INPUT = 300  # selectors grow with its square
FRAMES = 12  # Python frames for one step into the tree
INPUTS = (Indices, Length, Tokens)
ASSIGNABLE = ("tokens",)  # of the library's names


def sequence_of(value: Any) -> list[Any]:
    """The tokens of an input: a string's characters, or the items of a list."""
    if isinstance(value, str) or (isinstance(value, list) and all(map(is_atom, value))):
        if not value:
            raise Misfit("an input has at least one token", 'write it as y("abc") or y([1, 2])')
        if len(value) > LONGEST_INPUT:
            raise Misfit(f"an input of {len(value):,} tokens is too long; at most {LONGEST_INPUT} are allowed")
        return list(value)
    raise Misfit(f"an input is a string or a list of single values, not {describe(value)}")


class Evaluator:
    """Evaluates expressions and runs function bodies in one scope of one text."""

    def __init__(
        self,
        source: Source,
        scope: Scope,
        constants: Mapping[str, Any],
        library: Mapping[str, Any],
        budget: Allowance,
        caller: Place | None = None,
        example: str = "",
    ) -> None:
        self.source, self.scope, self.budget, self.caller = source, scope, budget, caller
        self.example = example  # the statements that set the running example
        self.constants, self.library = constants, library
        self.loops = 0  # the number of loops running in this scope

    # places and failures

    def place(self, span: Span) -> Place:
        """The place of a span; for code of the library, the place of the call."""
        if self.source.hidden and self.caller is not None:
            return self.caller
        return Place(self.source, span, self.example)

    def fail(self, span: Span, what: str, hint: str = "") -> NoReturn:
        """Refuse the program."""
        raise SourceError(what, expression=self.place(span), hint=hint)

    def spend(self, steps: int, span: Span) -> None:
        """Count steps, and refuse a program that takes too many."""
        if not self.budget.spend(steps):
            self.fail(span, f"the program takes more than {STEPS:,} steps", "check that every loop and recursion ends")

    def spend_on(self, span: Span, *values: Any) -> None:
        """Count the steps of reading or making long lists and texts."""
        self.spend(sum(size_of(value) // VALUES for value in values), span)

    def spend_on_running(self, exprs: Sequence[RASPExpr], tokens: int, span: Span) -> None:
        """Count the steps of running expressions on an input."""
        cells = sum(tokens if isinstance(expr, SOp) else tokens**2 for expr in exprs)
        self.spend(len(exprs) + cells // VALUES, span)

    @contextlib.contextmanager
    def at(self, span: Span) -> Iterator[None]:
        """Turn a `Misfit` into an error with the place."""
        try:
            yield
        except Misfit as misfit:
            raise SourceError(misfit.what, expression=self.place(span), hint=misfit.hint) from None

    def made(self, value: Any, span: Span) -> Any:
        """The value; a new expression, and the new ones it is built from, get their place and type."""
        if not isinstance(value, RASPExpr) or _is_made(value):
            return value
        inner = {child: self.made(child, span) for child in value.children}
        twin = value.reading(inner, self.place(span))
        return twin.annotated(**{TYPED: not _is_half(twin)}) if isinstance(twin, SOp) else twin

    # expressions

    def value(self, node: syntax.Node) -> Any:
        """The value of an expression."""
        budget = self.budget
        self.spend(1, node.span)
        budget.depth += 1
        if budget.depth > DEPTH:
            budget.depth = 0
            self.fail(node.span, "functions call each other too deeply", "check that the recursion ends")
        result = getattr(self, type(node).__name__.lower())(node)
        budget.depth -= 1
        return result

    def literal(self, node: syntax.Literal) -> Any:
        return node.value

    def name(self, node: syntax.Name) -> Any:
        if node.name == "out":
            return self.last_value(node.span)
        for names in self.names_in_sight():
            if node.name in names:
                return names[node.name]
        self.fail(node.span, f"the name {node.name} is not defined", self.advice_on(node.name))

    def names_in_sight(self) -> Iterator[Mapping[str, Any]]:
        """The names that can be read in this scope, the innermost first."""
        yield from (scope.own for scope in self.scope.outwards())
        yield from (self.library, self.constants)

    def advice_on(self, name: str) -> str:
        """A hint for a name that is not defined."""
        known = [*FUNCTIONS, *(known for names in self.names_in_sight() for known in names)]
        if close := difflib.get_close_matches(name, known, 1):
            return f"did you mean {close[0]}?"
        if self.caller is None:
            return ""
        return f"a function reads names when it is called: define {name} before the call at {self.caller}"

    def last_value(self, span: Span) -> Any:
        """`out`: the last value computed in this scope, else in the scopes around it."""
        found = (scope.out for scope in self.scope.outwards() if scope.out is not NOTHING)
        value = next(found, NOTHING)
        if value is NOTHING:
            self.fail(span, "nothing has been computed yet", "out is the last value")
        return value

    def paren(self, node: syntax.Paren) -> Any:
        return self.value(node.inner)

    def list(self, node: syntax.List) -> Any:
        items = [self.value(item) for item in node.items]
        self.spend_on(node.span, *items)
        with self.at(node.span):
            return Items(items)

    def dict(self, node: syntax.Dict) -> Any:
        with self.at(node.span):
            return operators.entries([(self.value(key), self.value(item)) for key, item in node.pairs])

    def comprehension(self, node: syntax.Comprehension) -> Any:
        found = []
        items = self.items_of(node.iterable)
        around = self.scope
        self.scope = Scope({}, around)  # functions called from here do not see its names
        for _ in self.rounds(items, node.names, node.span):
            if node.condition is None or self.condition(node.condition):
                key = None if node.key is None else self.value(node.key)
                found.append((key, self.value(node.value)))
        self.scope = around
        with self.at(node.span):
            return Items([item for _, item in found]) if node.key is None else operators.entries(found)

    def filtered(self, node: syntax.Filtered) -> Any:
        self.fail(node.span, "this if has no else", "write a if c else b")

    def unary(self, node: syntax.Unary) -> Any:
        operand = self.value(node.operand)
        with self.at(node.span):
            return self.made(operators.unary(node.symbol, operand), node.span)

    def binary(self, node: syntax.Binary) -> Any:
        chain: list[syntax.Binary] = []
        first: syntax.Node = node
        while isinstance(first, syntax.Binary):
            chain.append(first)
            first = first.left
        result = self.value(first)
        for link in reversed(chain):
            result = self.combined(link, result)
        return result

    def combined(self, node: syntax.Binary, left: Any) -> Any:
        """An operator applied to the value of its left side."""
        right = self.value(node.right)
        self.spend_on(node.span, left, right)
        with self.at(node.span):
            return self.made(operators.binary(node.symbol, left, right), node.span)

    def ternary(self, node: syntax.Ternary) -> Any:
        condition = self.value(node.condition)
        if isinstance(condition, SOp):
            branches = self.value(node.then), self.value(node.otherwise)
            with self.at(node.span):
                return self.made(operators.ternary(branches[0], condition, branches[1]), node.span)
        return self.value(node.then if self.truth(condition, node.condition.span) else node.otherwise)

    def condition(self, node: syntax.Node) -> bool:
        """The truth of a plain value."""
        return self.truth(self.value(node), node.span)

    def truth(self, value: Any, span: Span) -> bool:
        """Whether a plain value counts as true."""
        if not is_atom(value) and not isinstance(value, list | dict):
            self.fail(span, f"{describe(value)} is neither true nor false", "a condition is a value or an s-op")
        return bool(value)

    def index(self, node: syntax.Index) -> Any:
        target, place = self.value(node.target), self.value(node.index)
        if isinstance(place, SOp):
            self.spend_on(node.span, target)
        with self.at(node.span):
            return self.made(operators.index(target, place), node.span)

    def selectcall(self, node: syntax.SelectCall) -> Any:
        keys, queries = self.value(node.keys), self.value(node.queries)
        with self.at(node.span):
            return self.made(operators.select(keys, queries, node.comparison), node.span)

    def builtin(self, node: syntax.Builtin) -> Any:
        arguments = [self.value(argument) for argument in node.arguments]
        least, most = {"aggregate": (2, 3), "range": (1, 3), "zip": (1, 100), "len": (1, 1)}[node.name]
        if not least <= len(arguments) <= most:
            wanted = least if least == most else f"{least} to {most}"
            self.fail(node.span, f"{node.name} takes {wanted} arguments, not {len(arguments)}")
        with self.at(node.span):
            result = self.made(operators.BUILTINS[node.name](*arguments), node.span)
        self.spend_on(node.span, result)
        return result

    def call(self, node: syntax.Call) -> Any:
        target = self.value(node.target)
        arguments = [self.value(argument) for argument in node.arguments]
        if isinstance(target, Native):
            self.check_arity(target.name, target.parameters, arguments, node.span)
            with self.at(node.span):
                return self.made(target.call(*arguments), node.span)
        if isinstance(target, Function):
            self.check_arity(target.name, target.definition.parameters, arguments, node.span)
            return self.run_function(target, arguments, node.span)
        if isinstance(target, RASPExpr):
            return self.applied(target, arguments, node.span)
        self.fail(node.target.span, f"{describe(target)} cannot be called", "functions and s-ops can")

    def check_arity(self, name: str, parameters: Sequence[str], arguments: Sequence[Any], span: Span) -> None:
        """Refuse a call with too many or too few arguments."""
        if len(parameters) != len(arguments):
            self.fail(
                span,
                f"{name} takes {len(parameters)} argument{'s' * (len(parameters) != 1)}, not {len(arguments)}",
                f"it is {name}({', '.join(parameters)})",
            )

    def run_function(self, function: Function, arguments: Sequence[Any], span: Span) -> Any:
        """Run the body in a new scope and return its result: a list if it returns several values."""
        scope = Scope({}, function.scope)
        place = self.place(span)
        inner = Evaluator(function.source, scope, self.constants, self.library, self.budget, place, self.example)
        for name, value in zip(function.definition.parameters, arguments, strict=True):
            inner.set_name(name, value, function.definition.head)
        for statement in function.definition.body:
            inner.run(statement)
        results = [inner.value(result) for result in function.definition.results]
        return results[0] if len(results) == 1 else Items(results)

    def applied(self, expr: RASPExpr, arguments: Sequence[Any], span: Span) -> Any:
        """The result of an expression on an input; or, given an s-op, the expression with it in place of the tokens."""
        if len(arguments) != 1:
            self.fail(span, f"{describe(expr)} is called on one input", 'write it as y("abc") or y([1, 2])')
        (given,) = arguments
        parts = topological([expr])
        if isinstance(given, SOp):
            self.spend(len(parts), span)
            return _composed(parts, given)
        with self.at(span):
            xs = sequence_of(given)
            self.spend_on_running(parts, len(xs), span)
            try:
                return Result(expr, xs, evaluate(expr, xs))  # type: ignore[arg-type]
            except (EvaluationError, InputError) as error:
                told = error.diagnostic
                raise SourceError(told.what, expression=told.origin or self.place(span), hint=told.hint) from error

    # statements inside functions and loops; `Runner` has the statements of the top level

    def run(self, statement: syntax.Statement) -> None:
        """Run one statement."""
        match statement:
            case syntax.Expression():
                self.scope.out = self.value(statement.value)
            case syntax.Assign():
                self.assign(statement)
            case syntax.Definition():
                self.define(statement)
            case syntax.Loop():
                self.loop(statement)
            case syntax.Empty():
                pass
            case _:
                self.fail(
                    statement.span,
                    "this statement is allowed only at the top level of a file",
                    "move it out of the braces",
                )

    def loop(self, statement: syntax.Loop) -> None:
        """`for`: expressions that the body assigns get their names after the last iteration."""
        self.loops += 1
        for _ in self.rounds(self.items_of(statement.iterable), statement.names, statement.span):
            for inner in statement.body:
                self.run(inner)
        self.loops -= 1
        own = self.scope.own
        own.update({name: self.named(name, own[name]) for name in assigned(statement) if name in own})

    def items_of(self, iterable: syntax.Node) -> Sequence[Any]:
        """The items that `for` goes through."""
        items = self.value(iterable)
        if not isinstance(items, list | dict | str):
            self.fail(iterable.span, f"for goes through a list or a dictionary, not {describe(items)}")
        self.spend_on(iterable.span, items)
        return list(items)

    def rounds(self, items: Sequence[Any], names: Sequence[str], span: Span) -> Iterator[None]:
        """Set the names to each item in turn."""
        for item in items:
            self.spend(1, span)
            parts = [item] if len(names) == 1 else item
            if not isinstance(parts, list | dict | str) or len(parts) != len(names):
                self.fail(span, f"{len(names)} names cannot take {describe(item)}", "zip(a, b) makes lists of two")
            for name, part in zip(names, parts, strict=True):
                self.set_name(name, part, span)
            yield

    def assign(self, statement: syntax.Assign) -> None:
        """`a, b = x, y`."""
        names, values = statement.names, [self.value(value) for value in statement.values]
        last = values[-1]
        if statement.symbol:
            (name,) = names
            old = self.value(syntax.Name((statement.span[0], statement.span[0] + len(name)), name))
            self.spend_on(statement.span, old, values[0])
            with self.at(statement.span):
                values = [self.made(operators.binary(statement.symbol, old, values[0]), statement.span)]
        if len(names) == 1:
            with self.at(statement.span):
                values = values if len(values) == 1 else [Items(values)]
        elif len(values) == 1 and isinstance(values[0], list | dict | str):
            values = list(values[0])
        if len(names) != len(values):
            self.fail(statement.span, f"{len(names)} names cannot take {len(values)} value{'s' * (len(values) != 1)}")
        for name, value in zip(names, values, strict=True):
            self.set_name(name, self.named(name, value), statement.span)
        self.scope.out = self.scope.own[names[0]] if len(names) == len(statement.values) == 1 else last

    def named(self, name: str, value: Any) -> Any:
        """The value; an expression is named after the first name it is assigned to."""
        if self.source.hidden or self.loops or not isinstance(value, RASPExpr) or isinstance(value, INPUTS):
            return value
        return value if NAME in value.annotations.explicit else value.named(name)

    def define(self, statement: syntax.Definition) -> None:
        """`def`: the function keeps the scope, and reads the names in it when it is called."""
        for name in statement.parameters:
            self.check_name(name, statement.head, local=True)
        self.set_name(statement.name, Function(statement, self.source, self.scope), statement.head)

    def check_name(self, name: str, span: Span, *, local: bool) -> None:
        """Refuse to redefine names of the language."""
        if name in self.constants:
            self.fail(span, f"{name} is a name of the language itself", "choose another name")
        if not local and name in self.library and name not in ASSIGNABLE:
            self.fail(span, f"{name} is a function or an s-op of the library", "choose another name")

    def set_name(self, name: str, value: Any, span: Span) -> None:
        """Assign a value in this scope; functions and comprehensions may reuse the names of the library."""
        self.check_name(name, span, local=self.scope.outer is not None or self.source.hidden)
        self.scope.own[name] = value


def _is_made(expr: RASPExpr) -> bool:
    """Whether an expression is not new: an input, or one that already has a place or a type."""
    return isinstance(expr, INPUTS) or isinstance(expr.origin, Place) or TYPED in expr.annotations.explicit


def _is_half(expr: SOp) -> bool:
    """Whether an s-op is half of a ternary, whose values are tuples."""
    return isinstance(getattr(expr, "f", None), Kept)


def _composed(parts: Sequence[RASPExpr], given: SOp) -> RASPExpr:
    """The last of the parts, which are in topological order, with `given` in place of the tokens."""
    replaced: dict[RASPExpr, RASPExpr] = {}
    for part in parts:
        changed = any(replaced[child] is not child for child in part.children)
        replaced[part] = given if isinstance(part, Tokens) else part.reading(replaced) if changed else part
    return replaced[parts[-1]]


@contextlib.contextmanager
def room_to_recurse() -> Iterator[None]:
    """Let Python recurse as deeply as the language allows."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEPTH * FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
