"""Functions of variables: as formulas over the names of the variables, or as a few examples."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from tracr.ir.domains import Domain, Finite
from tracr.ir.ops import Linear, Lookup, PairLookup, Positions, SumLookup, formula
from tracr.ir.program import Program, SOpNode
from tracr.rasp.function_text import ARGUMENTS, applied, is_known
from tracr.values import Value

__all__ = ["calls", "examples", "formula_of", "said"]

FEW = 4  # examples of a table
LONG = 7  # characters of a fraction that is rounded for readers if it has more
CALL = re.compile(r"(?<![\w.'\"])([^\W\d]\w*)[.(\[]")
BUILTIN = {"abs", "bool", "float", "int", "len", "max", "min", "round", "str", "sum"}
WORDS = {"and", "else", "if", "in", "is", "not", "or"}
SIGNS = ((re.compile(r" - -(?=[\d.])"), " + "), (re.compile(r" \+ -(?=[\d.])"), " - "))


@dataclass(frozen=True)
class _Labels:
    """The names of a formula: labels."""

    program: Program

    def sop(self, number: int) -> str:
        return self.program.sops[number].label

    def selector(self, number: int) -> str:
        return self.program.selectors[number].label

    def function(self, text: str) -> str:
        return text


def formula_of(program: Program, node: SOpNode) -> str | None:
    """The formula of an elementwise s-op over the labels of its inputs; `None` if only its table is known."""
    match node.op:
        case Linear():
            return _collected(node.op).text(_Labels(program), node.domain)
        case Lookup(function=function) | PairLookup(function=function) | SumLookup(function=function):
            text = applied(formula(function), [program.sops[number].label for number in node.op.inputs])
            return _signed(text) if is_known(text) else None
        case _:
            return None


def said(value: Value) -> str:
    """A value as a reader writes it: long fractions are rounded to four digits.

    >>> [said(value) for value in ("a", 3, 0.25, 1 / 3, 2.0000000000000004)]
    ["'a'", '3', '0.25', '0.3333', '2']
    """
    text = repr(value)
    return f"{value:.4g}" if isinstance(value, float) and len(text) > LONG else text


def _collected(op: Linear) -> Linear:
    """The sum with one term for each variable, without those whose factors add up to 0."""
    factors: dict[int, float] = {}
    for term, factor in op.terms:
        factors[term] = factors.get(term, 0) + factor
    return replace(op, terms=tuple((term, factor) for term, factor in factors.items() if factor))


def _signed(text: str) -> str:
    """A formula with "x + 2" instead of "x - -2"; texts with strings stay as they are."""
    if "'" in text or '"' in text:
        return text
    for sign, better in SIGNS:
        text = sign.sub(better, text)
    return text


def calls(node: SOpNode) -> bool:
    """Whether a formula calls functions, or reads collections, of which a reader knows only the names."""
    function = formula(getattr(node.op, "function", ""))
    if function.isidentifier():
        return function not in BUILTIN
    return any(name not in BUILTIN | WORDS | {*ARGUMENTS} for name in CALL.findall(function))


def examples(program: Program, node: SOpNode) -> str:
    """The first few entries of a table: "0 -> 'no', 1 -> 'yes', ..."; one for each result, as far as they go."""
    cells = node.op.cells
    if cells is None or not isinstance(node.domain, Finite):
        return ""
    places = [tuple(place) for place in np.argwhere(cells >= 0).tolist()]
    first = {int(cells[place]): place for place in reversed(places)}
    order = sorted(first.values())[:FEW]
    order += [place for place in places if place not in order][: FEW - len(order)]
    domains = _domains(program, node)
    texts = []
    for place in sorted(order):
        given = [_value(domain, code) for domain, code in zip(domains, place, strict=True)]
        left = given[0] if len(given) == 1 else f"({', '.join(given)})"
        texts.append(f"{left} -> {_value(node.domain, int(cells[place]))}")
    return ", ".join(texts) + (", ..." if len(places) > len(order) else "")


def _domains(program: Program, node: SOpNode) -> list[Domain | None]:
    match node.op:
        case SumLookup(points=points):
            return [points]
        case Positions():
            return [None]
        case _:
            return [program.sops[number].domain for number in node.op.inputs]


def _value(domain: Domain | None, code: int) -> str:
    return said(domain.values[code]) if isinstance(domain, Finite) else str(code)
