"""The tabulated program as text: one line for every s-op and selector, selectors directly before their first reader."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from tracr.ir.domains import Finite
from tracr.ir.graph import Graph
from tracr.ir.program import (
    Aggregation,
    CompositeNode,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    PairLookup,
    Positions,
    Program,
    Selector,
    SOpNode,
    SumLookup,
    TokensOp,
    Width,
)
from tracr.ir.saved_graph import SavedGraph
from tracr.values import value_text
from tracr.viz.explorer.lambdas import written

__all__ = ["Line", "listing"]

NAMED = re.compile(r"\.named\(.*\)$", re.DOTALL)
SIGNS = {"and": "&", "or": "|"}
SELECT = re.compile(r"Select\((.*), [^,]+, [^,]+\)", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """One line: the s-op or selector it defines, its text, and the line of the source file it was written on."""

    kind: str
    id: int
    label: str
    text: str
    row: int | None


def listing(program: Program, graph: Graph | SavedGraph) -> list[Line]:
    """The lines of a program. A loaded model has no functions: its lambdas appear as `<lambda>`.

    >>> import tracr
    >>> from tracr.rasp.programs import EXAMPLES
    >>> model = tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 5)
    >>> print("\\n".join(f"{line.label} = {line.text}" for line in listing(model.program, model.graph)))
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
        if isinstance(node.op, Aggregation | Width):
            for selector in program.parts(node.op.selector):
                if selector.id not in done:
                    done.add(selector.id)
                    text = _selector_text(program, selector, graph)
                    lines.append(Line("selector", selector.id, selector.label, text, _row(selector.origin, file)))
        lines.append(Line("sop", node.id, node.label, _sop_text(program, node, graph), _row(node.origin, file)))
    return lines


def _row(origin: str, file: str) -> int | None:
    name, _, row = origin.rpartition(":")
    return int(row) if name == file and row.isdigit() else None


def _sop_text(program: Program, node: SOpNode, graph: Graph | SavedGraph) -> str:
    def label(number: int) -> str:
        return program.sops[number].label

    match node.op:
        case TokensOp():
            return "the input"
        case IndicesOp():
            return "the positions"
        case LengthOp():
            return "the number of tokens"
        case Constant():
            assert isinstance(node.domain, Finite)
            return repr(node.domain.values[0])
        case Positions():
            return "one value for each position"
        case Lookup(inner=inner, function=function):
            return f"Map({_function(function, graph, node.id)}, {label(inner)})"
        case PairLookup(fst=fst, snd=snd, function=function):
            return f"SequenceMap({_function(function, graph, node.id)}, {label(fst)}, {label(snd)})"
        case SumLookup(terms=terms, function=function):
            return f"Map({function}, {_sum([(factor, label(term)) for term, factor in terms], 0)})"
        case Linear(terms=terms, constant=constant):
            return _sum([(factor, label(term)) for term, factor in terms], constant)
        case Aggregation(selector=selector, value=value, default=default):
            rest = "" if default is None else f", default={value_text(default)}"
            return f"Aggregate({program.selectors[selector].label}, {label(value)}{rest})"
        case Width(selector=selector):
            return f"SelectorWidth({program.selectors[selector].label})"


def _function(text: str, graph: Graph | SavedGraph, number: int) -> str:
    """The text of a node's function, with the source text of lambdas."""
    if "<lambda>" not in text or isinstance(graph, SavedGraph) or number >= len(graph.nodes):
        return text
    expr = graph.nodes[number].expr
    function = getattr(expr, "f", None) or getattr(expr, "predicate", None)
    return text if function is None else written(function)


def _sum(terms: list[tuple[float, str]], constant: float) -> str:
    """A weighted sum as text.

    >>> _sum([(1, "a"), (-1, "b"), (0.5, "c")], -2)
    'a - b + 0.5 * c - 2'
    """
    parts = [(factor < 0, label if abs(factor) == 1 else f"{abs(factor):g} * {label}") for factor, label in terms]
    parts += [(constant < 0, f"{abs(constant):g}")] if constant or not terms else []
    text = " ".join(f"{'-' if minus else '+'} {part}" for minus, part in parts)
    return text.removeprefix("+ ").replace("- ", "-", 1) if text.startswith("- ") else text.removeprefix("+ ")


def _selector_text(program: Program, selector: Selector, graph: Graph | SavedGraph) -> str:
    if isinstance(selector, CompositeNode):
        parts = [program.selectors[part].label for part in selector.parts]
        return f"~{parts[0]}" if selector.kind == "not" else f" {SIGNS[selector.kind]} ".join(parts)
    source = NAMED.sub("", selector.source)
    plain = SELECT.fullmatch(source)
    if plain is None:
        return source
    predicate = _function(plain[1], graph, selector.id)
    return f"Select({program.sops[selector.keys].label}, {program.sops[selector.queries].label}, {predicate})"
