"""Functions of variables: as formulas over the names of the variables, or as a few examples."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tracr.ir.domains import Domain, Finite
from tracr.ir.ops import Linear, Lookup, PairLookup, Positions, SumLookup, formula
from tracr.ir.program import Program, SOpNode
from tracr.rasp.function_text import ARGUMENTS, applied, is_known

__all__ = ["calls", "examples", "formula_of"]

FEW = 4  # examples of a table
CALL = re.compile(r"(?<![\w.'\"])([^\W\d]\w*)[.(\[]")
BUILTIN = {"abs", "bool", "float", "int", "len", "max", "min", "round", "str", "sum"}
WORDS = {"and", "else", "if", "in", "is", "not", "or"}


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
            return node.op.text(_Labels(program), node.domain)
        case Lookup(function=function) | PairLookup(function=function) | SumLookup(function=function):
            text = applied(formula(function), [program.sops[number].label for number in node.op.inputs])
            return text if is_known(text) else None
        case _:
            return None


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
    return repr(domain.values[code]) if isinstance(domain, Finite) else str(code)
