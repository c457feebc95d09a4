"""Prints a program as Python source. Running the text gives a program of the same structure."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tracr.datasets.python_text import Imports, UnprintableError, function_text, value_text
from tracr.datasets.structure import functions_of
from tracr.ir.graph import unique_labels
from tracr.rasp import expressions
from tracr.rasp.annotations import ENCODING, NAME, Encoding
from tracr.rasp.expressions import (
    Indices,
    Length,
    LinearSequenceMap,
    Map,
    RASPExpr,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SequenceMap,
    SOp,
    Tokens,
    indices,
    length,
    tokens,
)
from tracr.rasp.functions import BinaryOperator, ConstantOperator, Function, UnaryOperator
from tracr.rasp.traversal import topological

__all__ = ["run_python", "to_python", "with_lines"]

INPUTS: Mapping[RASPExpr, str] = {tokens: "rasp.tokens", indices: "rasp.indices", length: "rasp.length"}
SIGNS = {"and": "&", "or": "|", "not": "~", "neg": "-"}  # operators of s-ops that Python writes differently
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
INFIX = (*COMPARISONS, "+", "-", "*", "/", "//", "%", "**", "and", "or")  # the operators of s-ops
INLINE = 3  # the most functions of a fused Map in one line
RESULT, FILE = "program", "program.py"
RESERVED = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})


def to_python(program: RASPExpr) -> str:
    """Python source that makes `program`: one line for every s-op and selector; the last line is `program = ...`.

    A function that is neither an operator nor importable (a lambda, say) is refused with an `UnprintableError`.

    >>> from tracr.rasp import rasp
    >>> prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ).named("prevs")
    >>> print(to_python(rasp.Aggregate(prevs, rasp.numerical(rasp.tokens == "x")).named("frac_prevs")), end="")
    from tracr.rasp import rasp
    <BLANKLINE>
    prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ).named('prevs')
    mapped = rasp.numerical(rasp.tokens == 'x')
    frac_prevs = rasp.Aggregate(prevs, mapped).named('frac_prevs')
    program = frac_prevs
    """
    return _printed(program)[0]


def with_lines(program: SOp) -> tuple[str, SOp]:
    """The text of `to_python`, and the program whose expressions have their lines in it as origins.

    The program is that of `run_python(text)`, without running the text.
    """
    text, lines = _printed(program)
    made: dict[RASPExpr, RASPExpr] = {expr: expr for expr in INPUTS}
    for expr in topological([program]):
        if expr not in made:
            shared = isinstance(expr, Tokens | Indices | Length) and expr.annotations.explicit
            made[expr] = expr.reading(made, tokens.origin if shared else f"{FILE}:{lines[expr]}")
    placed = made[program]
    assert isinstance(placed, SOp)
    return text, placed


def _printed(program: RASPExpr) -> tuple[str, dict[RASPExpr, int]]:
    """The text, and the number of the line that completes each expression, from 1."""
    exprs = [expr for expr in topological([program]) if expr not in INPUTS]
    imports, wanted = Imports(), [_variable(expr) for expr in exprs]
    while True:
        names = dict(zip(exprs, unique_labels(wanted, {*imports.names, RESULT, *RESERVED}), strict=True))
        printer = _PythonPrinter({**INPUTS, **names}, imports)
        lines = [printer.lines(expr) for expr in exprs]
        if imports.names.isdisjoint(names.values()):  # else an expression has the name of an import
            break
    text, places = [*imports.lines(), ""], {}
    for expr, own in zip(exprs, lines, strict=True):
        text += own
        places[expr] = len(text)
    return "\n".join([*text, f"{RESULT} = {printer.names[program]}", ""]), places


def run_python(text: str, file: str = FILE) -> SOp:
    """The program that a text of `to_python` makes; its expressions have their lines in `file` as origins.

    This executes the text: do not run a text that you do not trust.
    """
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    program: SOp = names[RESULT]
    return program


def _variable(expr: RASPExpr) -> str:
    """A Python name similar to the name of the expression."""
    own = expr.annotations.explicit.get(NAME)
    text = re.sub(r"\W+", "_", str(own), flags=re.ASCII).strip("_") if own is not None else expr.default_name
    if not text or text[0].isdigit():
        text = f"{expr.default_name}_{text}".rstrip("_")
    return "mapped" if text == "map" else text


class PythonPhrase(NamedTuple):
    """An expression as text; `closed` if it never needs parentheses: a name or a call."""

    text: str
    closed: bool = True

    @property
    def operand(self) -> str:
        """The text beside an operator or before a dot."""
        return self.text if self.closed else f"({self.text})"


class _PythonPrinter:
    """The text of expressions whose children have names."""

    def __init__(self, names: Mapping[RASPExpr, str], imports: Imports) -> None:
        self.names, self.imports = names, imports

    def lines(self, expr: RASPExpr) -> list[str]:
        """The assignment of one expression, in several steps if it composes many functions."""
        name = self.names[expr]
        if not isinstance(expr, Map):
            return [f"{name} = {self.annotated(expr, self.phrase(expr))}"]
        functions, lines, phrase = functions_of(expr.f), [], PythonPhrase(self.names[expr.inner])
        for number, function in enumerate(functions):
            # A Map of a Map fuses, unless it had `simplify=False`. Only the first function shows this.
            phrase = self.applied(function, phrase, expr, unfused=number == 0 and isinstance(expr.inner, Map))
            if number % INLINE == INLINE - 1 and number < len(functions) - 1:
                lines.append(f"{name} = {phrase.text}")
                phrase = PythonPhrase(name)
        return [*lines, f"{name} = {self.annotated(expr, phrase)}"]

    def annotated(self, expr: RASPExpr, phrase: PythonPhrase) -> str:
        """The text with the encoding, the name and the other annotations."""
        explicit = dict(expr.annotations.explicit)
        encoding, name = explicit.pop(ENCODING, None), explicit.pop(NAME, None)
        if isinstance(encoding, Encoding):
            phrase = PythonPhrase(f"rasp.{encoding.value}({phrase.text})")
        parts = []
        if name is not None:
            parts.append(f".named({value_text(name, self.where(expr))})")
        for key, value in explicit.items():
            if not key.isidentifier() or keyword.iskeyword(key):
                raise UnprintableError(
                    f"{self.where(expr)}: the annotation {key!r} cannot be written as a keyword",
                    hint="use a Python name as its key",
                )
            parts.append(f".annotated({key}={value_text(value, self.where(expr))})")
        return f"{phrase.operand}{''.join(parts)}" if parts else phrase.text

    def where(self, expr: RASPExpr) -> str:
        return f"{expr.name} ({type(expr).__name__})"

    def function(self, function: Function, expr: RASPExpr) -> str:
        return function_text(function, self.where(expr), self.imports)

    def phrase(self, expr: RASPExpr) -> PythonPhrase:
        """The text right of the equals sign, without annotations."""
        children = [self.names[child] for child in expr.children]
        kind = type(expr).__name__
        match expr:
            case Tokens() | Indices() | Length():
                return PythonPhrase(f"rasp.{expr.default_name}" if expr.annotations.explicit else f"rasp.{kind}()")
            case SequenceMap() if not isinstance(expr, LinearSequenceMap):
                return self.pair(expr, *children)
            case SelectorAnd() | SelectorOr():
                return PythonPhrase(f" {'&' if isinstance(expr, SelectorAnd) else '|'} ".join(children), closed=False)
            case SelectorNot():
                return PythonPhrase(f"~{children[0]}", closed=False)
            case _:
                return PythonPhrase(f"rasp.{kind}({', '.join(self.arguments(expr))})")

    def arguments(self, expr: RASPExpr) -> list[str]:
        """The arguments of the constructor of an expression: each parameter is a field of the same name."""
        if getattr(expressions, type(expr).__name__, None) is not type(expr):
            what = f"{self.where(expr)} is not an expression of the language"
            raise UnprintableError(what, hint="build programs with tracr.rasp")
        found: list[str] = []
        by_keyword = False
        for name, parameter in _parameters(type(expr)):  # type: ignore[arg-type]  # mypy looks at the hash of instances
            text = self.argument(getattr(expr, name), expr)
            optional = parameter.default is not parameter.empty
            if optional and text == self.argument(parameter.default, expr):
                by_keyword = True  # what follows one that is left out
            else:
                found.append(f"{name}={text}" if by_keyword or isinstance(parameter.default, bool) else text)
        return found

    def argument(self, content: Any, expr: RASPExpr) -> str:
        """One argument: an expression by its name, a function, or a value."""
        if isinstance(content, RASPExpr):
            return self.names[content]
        return self.function(content, expr) if callable(content) else value_text(content, self.where(expr))

    def pair(self, expr: SequenceMap, fst: str, snd: str) -> PythonPhrase:
        """A function of two s-ops; `fst < snd`, unless Python would swap it for a subclass on the right."""
        f = expr.f
        turned = type(expr.snd) is not type(expr.fst) and isinstance(expr.snd, type(expr.fst))
        if isinstance(f, BinaryOperator) and f.symbol in INFIX and not (turned and f.symbol in COMPARISONS):
            return PythonPhrase(f"{fst} {SIGNS.get(f.symbol, f.symbol)} {snd}", closed=False)
        return PythonPhrase(f"rasp.SequenceMap({self.function(f, expr)}, {fst}, {snd})")

    def applied(self, function: Function, operand: PythonPhrase, expr: Map, *, unfused: bool) -> PythonPhrase:
        """A function of one s-op: an operator if it means the same, else a Map."""
        if isinstance(function, UnaryOperator) and function.symbol in SIGNS and not unfused:
            return PythonPhrase(f"{SIGNS[function.symbol]}{operand.operand}", closed=False)
        if isinstance(function, ConstantOperator) and not unfused and _is_infix(function):
            sign = SIGNS.get(function.symbol, function.symbol)
            constant = value_text(function.constant, self.where(expr))
            if function.reflected:
                constant = f"({constant})" if constant.startswith("-") else constant
                return PythonPhrase(f"{constant} {sign} {operand.operand}", closed=False)
            return PythonPhrase(f"{operand.operand} {sign} {constant}", closed=False)
        ending = ", simplify=False" if unfused else ""
        return PythonPhrase(f"rasp.Map({self.function(function, expr)}, {operand.text}{ending})")


@functools.cache
def _parameters(kind: type[RASPExpr]) -> tuple[tuple[str, inspect.Parameter], ...]:
    """The parameters of the constructor of a kind of expression."""
    return tuple(inspect.signature(kind).parameters.items())


def _is_infix(function: ConstantOperator) -> bool:
    """Whether Python's operator between constant and s-op gives this function."""
    if function.symbol not in INFIX:
        return False
    if not function.reflected:
        return True
    formats = function.symbol == "%" and isinstance(function.constant, str | bytes)  # "..." % x is formatting
    return function.symbol not in COMPARISONS and not formats
