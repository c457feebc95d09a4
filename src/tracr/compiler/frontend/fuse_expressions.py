"""The pass `fuse_expressions`, for the textual language: merges the operations of one expression into one.

`round((indices + 1) * share)` is three operations on s-ops and would take three MLPs in a row; as one function of
`indices` and `share` it takes one. An s-op with a name in the program stays a variable of its own.

- Nested functions of one s-op become one `Map`, of two s-ops one `SequenceMap`. Functions of three s-ops are not
  merged: a table over three inputs is large.
- Sums and differences of means are not merged: heads' outputs can be added without listing their values.
- `tokens_asis` becomes the tokens; so do `tokens_str` and similar s-ops if the vocabulary already has that type.

Only s-ops of the textual language (`TYPED`) change. In Python the programmer decides what is one operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracr.compiler.frontend.rules.weighted_sums import linear_form
from tracr.rasp.annotations import NAME, TYPED
from tracr.rasp.elementwise import tokens
from tracr.rasp.expressions import Aggregate, Map, RASPExpr, SequenceMap, SOp, Tokens
from tracr.rasp.function_text import ARGUMENTS, applied, function_text
from tracr.rasp.functions import Composition, Function, Printed, UnaryOperator
from tracr.rasp.traversal import topological
from tracr.values import Value, as_value

__all__ = ["fuse"]

MOST_STEPS = 64  # of one function: a longer chain becomes several operations


@dataclass(frozen=True)
class Formula(Printed):
    """A function in several steps. Each step names its arguments by number: first the inputs, then earlier steps."""

    inputs: int
    steps: tuple[tuple[Function, tuple[int, ...]], ...]

    def __call__(self, *values: Value) -> Value:
        """The last step's result."""
        known: list[Any] = list(values)
        for function, arguments in self.steps:
            known.append(as_value(function(*(known[place] for place in arguments)), where="an intermediate result"))
        return known[-1]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        texts: list[str] = [*ARGUMENTS[: self.inputs]]
        for function, arguments in self.steps:
            texts.append(applied(function_text(function), [texts[place] for place in arguments]))
        return texts[-1]


def fuse(outputs: Mapping[str, SOp], vocab: Sequence[Value]) -> dict[str, SOp]:
    """The outputs, with the operations of each expression merged."""
    exprs = topological(output for output in outputs.values() if isinstance(output, SOp))
    if len(outputs) > len(exprs) or not any(map(_is_textual, exprs)):
        return dict(outputs)  # not a program: `trace` refuses it
    fusion = _ExpressionFusion(exprs, set(outputs.values()), vocab)
    for expr in exprs:
        fusion.visit(expr)
    return {name: fusion.new[output] for name, output in outputs.items()}  # type: ignore[misc]


class _ExpressionFusion:
    """The new expression for each expression of the program, so far."""

    def __init__(self, exprs: Sequence[RASPExpr], outputs: set[SOp], vocab: Sequence[Value]) -> None:
        self.vocab, self.outputs = vocab, outputs
        self.readers = Counter(child for expr in exprs for child in set(expr.children))
        self.new: dict[RASPExpr, RASPExpr] = {}
        self.means: set[RASPExpr] = set()  # means, and sums of means

    def visit(self, expr: RASPExpr) -> None:
        """Fuse an expression with those of its operands that need no variable of their own."""
        own = _without_conversion(self._with_new_operands(expr), self.vocab)
        averages = self._averages(own)
        if _is_textual(own) and (isinstance(own, Map) or (isinstance(own, SequenceMap) and not averages)):
            own = _fused(own, self._vanishing(expr, own))
        if averages:
            self.means.add(own)
        self.new[expr] = own

    def _with_new_operands(self, expr: RASPExpr) -> RASPExpr:
        return expr if all(self.new[child] is child for child in expr.children) else expr.reading(self.new)

    def _averages(self, expr: RASPExpr) -> bool:
        """Whether it is a mean, or a sum or difference of means."""
        linear = isinstance(expr, Map | SequenceMap) and linear_form(expr) is not None
        return isinstance(expr, Aggregate) or (linear and not self.means.isdisjoint(expr.children))

    def _vanishing(self, expr: RASPExpr, own: RASPExpr) -> set[RASPExpr]:
        """The operands that can be computed in their reader: not outputs, and not sums of means."""
        return {
            child
            for old, child in zip(expr.children, own.children, strict=False)
            if old not in self.outputs and _may_vanish(child, self.readers[old])
            if not (isinstance(child, SequenceMap) and child in self.means)
        }


def _without_conversion(expr: RASPExpr, vocab: Sequence[Value]) -> RASPExpr:
    """The tokens, if the s-op converts them to the type they already have in the vocabulary; else the s-op."""
    if _is_identity(expr, vocab):
        return expr.children[0]
    return tokens if isinstance(expr, Tokens) and _is_textual(expr) else expr


def _is_textual(expr: RASPExpr) -> bool:
    return expr.annotation(TYPED) is not None


def _cast(expr: RASPExpr) -> type | None:
    """The type that an s-op converts the tokens to."""
    if not (isinstance(expr, Map) and isinstance(expr.inner, Tokens) and isinstance(expr.f, UnaryOperator)):
        return None
    return {"str": str, "int": int, "float": float, "bool": bool}.get(expr.f.symbol) if _is_textual(expr) else None


def _is_identity(expr: RASPExpr, vocab: Sequence[Value]) -> bool:
    """Whether an s-op converts tokens to a type that they already have."""
    kind = _cast(expr)
    return kind is not None and all(type(token) is kind for token in vocab)


def _may_vanish(expr: RASPExpr, readers: int) -> bool:
    """Whether an operand has no name of its own and is cheap to compute in its reader."""
    if not isinstance(expr, Map | SequenceMap) or not _is_textual(expr) or _steps(expr) >= MOST_STEPS:
        return False
    if NAME in expr.annotations.explicit:
        return _cast(expr) is not None
    return isinstance(expr, Map) or readers == 1


def _fused(expr: Map | SequenceMap, inline: set[RASPExpr]) -> SOp:
    """`expr` computed from the inputs of its operands, as long as these are at most two s-ops."""
    if isinstance(expr, Map):
        return _joined(expr, inline)
    maps: set[RASPExpr] = {child for child in inline if isinstance(child, Map)}
    for choice in (inline, maps):
        if len(_leaves(expr, choice)) <= 2:
            return _joined(expr, choice)
    return expr


def _steps(expr: Map | SequenceMap) -> int:
    """How many functions an operation consists of."""
    function = expr.f
    if isinstance(function, Formula):
        return len(function.steps)
    return len(function.functions()) if isinstance(function, Composition) else 1


def _leaves(expr: RASPExpr, inline: set[RASPExpr]) -> list[RASPExpr]:
    found: dict[RASPExpr, None] = {}
    for child in expr.children:
        found.update(dict.fromkeys(child.children if child in inline else (child,)))
    return list(found)


def _joined(expr: Map | SequenceMap, inline: set[RASPExpr]) -> SOp:
    leaves = _leaves(expr, inline)
    (child, *others) = expr.children
    if not inline or not leaves:
        return expr
    if isinstance(expr, Map) and isinstance(child, Map) and not others:
        return _like(expr, Map(Composition(child.f, expr.f), child.inner, simplify=False))
    place = {leaf: number for number, leaf in enumerate(leaves)}  # == between s-ops builds an s-op
    steps: list[tuple[Function, tuple[int, ...]]] = []
    places: list[int] = []
    for operand in expr.children:
        if operand not in inline:
            places.append(place[operand])
            continue
        assert isinstance(operand, Map | SequenceMap)
        own = [place[leaf] for leaf in operand.children]
        places.append(_append(steps, operand.f, own, len(leaves)))
    _append(steps, expr.f, places, len(leaves))
    formula = Formula(len(leaves), tuple(steps))
    first, *rest = leaves
    assert isinstance(first, SOp)
    if not rest:
        return _like(expr, Map(formula, first, simplify=False))
    assert isinstance(rest[0], SOp)
    return _like(expr, SequenceMap(formula, first, rest[0]))


def _append(
    steps: list[tuple[Function, tuple[int, ...]]], function: Function, arguments: Sequence[int], inputs: int
) -> int:
    """Add a function to the steps (a formula step by step); return the number of its result."""
    if not isinstance(function, Formula):
        steps.append((function, tuple(arguments)))
        return inputs + len(steps) - 1
    places = list(arguments)
    for inner, own in function.steps:
        steps.append((inner, tuple(places[place] for place in own)))
        places.append(inputs + len(steps) - 1)
    return places[-1]


def _like(expr: SOp, fused: SOp) -> SOp:
    """The fused s-op with the name, the type and the source location of the one it replaces."""
    return fused.annotated(**expr.annotations.explicit).written_at(expr.origin)
