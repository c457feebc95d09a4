"""Sharing: s-ops that compute the same become one, and what no output needs is dropped.

Two s-ops are the same if they do the same operation with the same table on the same inputs; names, annotations and
the identity of a lambda do not matter. At level 0 nothing is merged (one operation, one component), only dead code
goes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from tracr.ir.program import (
    Aggregation,
    Attention,
    CompositeNode,
    Linear,
    Lookup,
    Op,
    PairLookup,
    Program,
    Selector,
    SOpNode,
    SumLookup,
    Width,
)
from tracr.rasp.annotations import Encoding

__all__ = ["drop_unused", "share"]

T = TypeVar("T", bound=SOpNode | Op | Selector)


def share(program: Program) -> Program:
    """Replace every node by the first that computes the same."""

    def to(number: int) -> int:
        return program.same[number]

    def redirect(op: Op) -> Op:
        match op:
            case Lookup():
                return _with(op, inner=to(op.inner))
            case PairLookup():
                return _with(op, fst=to(op.fst), snd=to(op.snd))
            case Linear() | SumLookup():
                return _with(op, terms=tuple((to(number), factor) for number, factor in op.terms))
            case Aggregation():
                return _with(op, selector=to(op.selector), value=to(op.value))
            case Width():
                return _with(op, selector=to(op.selector))
            case _:
                return op

    wishes: dict[int, set[Encoding | None]] = {}
    for node in program.sops.values():
        wishes.setdefault(to(node.id), set()).add(node.wish)
    sops = {
        number: _with(node, op=redirect(node.op), wish=_one_wish(wishes[number]))
        for number, node in program.sops.items()
        if to(number) == number
    }

    def redirect_selector(selector: Selector) -> Selector:
        if isinstance(selector, CompositeNode):
            return _with(selector, parts=tuple(map(to, selector.parts)))
        return _with(selector, keys=to(selector.keys), queries=to(selector.queries))

    selectors = {
        number: redirect_selector(selector) for number, selector in program.selectors.items() if to(number) == number
    }
    outputs = tuple((name, to(output)) for name, output in program.outputs)
    gone = {node.label: program.sops[to(node.id)].label for node in program.sops.values() if to(node.id) != node.id}
    shared = {label: gone.get(first, first) for label, first in program.shared.items()} | gone
    return replace(program, sops=sops, selectors=selectors, outputs=outputs, same={}, shared=shared)


def _with(value: T, /, **changes: Any) -> T:
    """The value with other fields; itself if they are what they were."""
    for name, new in changes.items():
        if getattr(value, name) != new:
            return replace(value, **changes)
    return value


def _one_wish(wishes: set[Encoding | None]) -> Encoding | None:
    """A one-hot code can be read as a number too, so it serves both wishes; no wish leaves it to the readers."""
    if Encoding.CATEGORICAL in wishes:
        return Encoding.CATEGORICAL
    return None if None in wishes else Encoding.NUMERICAL


def drop_unused(program: Program) -> Program:
    """Keep what the outputs need."""
    needed: set[int] = set()
    stack = [output for _, output in program.outputs]
    while stack:
        number = stack.pop()
        if number not in needed:
            needed.add(number)
            stack.extend(program.children(program.sops[number]))
    sops = {number: node for number, node in program.sops.items() if number in needed}
    used = {node.op.selector for node in sops.values() if isinstance(node.op, Attention)}
    parts = {part.id for number in used for part in program.parts(number)}
    selectors = {number: selector for number, selector in program.selectors.items() if number in parts}
    return replace(program, sops=sops, selectors=selectors, same={})
