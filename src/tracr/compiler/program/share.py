"""The passes `share` and `drop_unused`: equal s-ops become one, and s-ops that no output needs are dropped.

Two s-ops are equal if they do the same operation with the same table on the same inputs. Names, annotations and the
identity of a lambda do not matter. Level 0 merges nothing (one operation, one component), and only drops dead code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from tracr.ir.inferred import Inferred
from tracr.ir.ops import Op
from tracr.ir.program import InferredNode, Tables
from tracr.rasp.annotations import Encoding

__all__ = ["drop_unused", "merged", "share"]

Node = TypeVar("Node", bound=InferredNode)
Some = TypeVar("Some", bound=Tables)


def share(inferred: Inferred) -> Inferred:
    """Replace every node by the first that computes the same."""
    to, sops = inferred.same, inferred.sops
    left = merged(inferred, to)
    gone = {node.label: sops[to[number]].label for number, node in sops.items() if to[number] != number}
    shared = {label: gone.get(first, first) for label, first in inferred.shared.items()} | gone
    return replace(left, same={number: number for number in (*left.sops, *left.selectors)}, shared=shared)


def merged(program: Some, same: Mapping[int, int]) -> Some:
    """The program with every node replaced by its equal in `same`."""
    to = same.__getitem__
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
    return replace(program, sops=sops, selectors=selectors, outputs=outputs)


def _with(node: Node, op: Op, wish: Encoding | None) -> Node:
    """The s-op with this operation and this wish; itself if neither changes."""
    return node if op is node.op and wish is node.wish else replace(node, op=op, wish=wish)


def _one_wish(wishes: set[Encoding | None]) -> Encoding | None:
    """One encoding for all wishes: one-hot if any asks for it (it can be read as a number), else `None` if any is."""
    if Encoding.CATEGORICAL in wishes:
        return Encoding.CATEGORICAL
    return None if None in wishes else Encoding.NUMERICAL


def drop_unused(program: Some) -> Some:
    """The program with only the s-ops and selectors that the outputs need."""
    needed: set[int] = set()
    stack = [output for _, output in program.outputs]
    while stack:
        number = stack.pop()
        if number not in needed:
            needed.add(number)
            stack.extend(program.children(program.sops[number]))
    used = {selector for number in needed for selector in program.sops[number].op.selectors}
    return program.only(needed, {part.id for number in used for part in program.parts(number)})
