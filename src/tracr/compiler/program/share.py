"""Sharing: s-ops that compute the same become one, and what no output needs is dropped.

Two s-ops are the same if they do the same operation with the same table on the same inputs; names, annotations and
the identity of a lambda do not matter. At level 0 nothing is merged (one operation, one component), only dead code
goes.
"""

from __future__ import annotations

from dataclasses import replace

from tracr.ir.ops import Op
from tracr.ir.program import Program, SOpNode
from tracr.rasp.annotations import Encoding

__all__ = ["drop_unused", "share"]


def share(program: Program) -> Program:
    """Replace every node by the first that computes the same."""

    def to(number: int) -> int:
        return program.same[number]

    wishes: dict[int, set[Encoding | None]] = {}
    for node in program.sops.values():
        wishes.setdefault(to(node.id), set()).add(node.wish)
    sops = {
        number: _with(node, node.op.renumbered(to), _one_wish(wishes[number]))
        for number, node in program.sops.items()
        if to(number) == number
    }

    selectors = {
        number: selector.renumbered(to) for number, selector in program.selectors.items() if to(number) == number
    }
    outputs = tuple((name, to(output)) for name, output in program.outputs)
    gone = {node.label: program.sops[to(node.id)].label for node in program.sops.values() if to(node.id) != node.id}
    shared = {label: gone.get(first, first) for label, first in program.shared.items()} | gone
    return replace(program, sops=sops, selectors=selectors, outputs=outputs, same={}, shared=shared)


def _with(node: SOpNode, op: Op, wish: Encoding | None) -> SOpNode:
    """The s-op with these; itself if they are what they were."""
    return node if op is node.op and wish is node.wish else replace(node, op=op, wish=wish)


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
    used = {selector for node in sops.values() for selector in node.op.selectors}
    parts = {part.id for number in used for part in program.parts(number)}
    selectors = {number: selector for number, selector in program.selectors.items() if number in parts}
    return replace(program, sops=sops, selectors=selectors, same={})
