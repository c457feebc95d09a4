"""Applies rewrites to a program: the same program in fewer operations.

The passes `simplify`, `fuse` and `sums` propose rewrites: for an s-op, another operation with the same result, or an
equal s-op. This module applies them. The search decides which rewrites are kept.

Rewrites change only the program that is lowered. The program that models are checked against, and shown as, stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tracr.compiler.program.share import drop_unused, merged
from tracr.ir.ops import Linear, Op, Table
from tracr.ir.program import Program, SOpNode
from tracr.ir.rewriting import Rewritten

__all__ = ["Rewrites", "with_rewrites"]

Rewrites = Mapping[int, Op | int]
"""For an s-op, another operation with the same result, or the number of an equal s-op."""


def with_rewrites(program: Program, rewrites: Rewrites) -> Rewritten:
    """The program with these rewrites, without the s-ops and selectors that are no longer needed."""
    same = {number: number for number in (*program.sops, *program.selectors)}
    sops = dict(program.sops)
    for number, rewrite in rewrites.items():
        if isinstance(rewrite, int):
            same[number] = same[rewrite]
        else:
            sops[number] = replace(sops[number], op=rewrite)
    changed = drop_unused(merged(replace(program, sops=sops), same))
    original, absorbed = (program.original, dict(program.absorbed)) if isinstance(program, Rewritten) else (program, {})
    for label, where in _absorbed(program, changed, rewrites, same).items():
        absorbed[label] = f"{absorbed[label]}; {where}" if label in absorbed else where
    return Rewritten(
        program.options,
        changed.sops,
        changed.selectors,
        changed.outputs,
        program.lengths,
        changed.stored,
        program.warnings,
        program.assumptions,
        program.shared,
        program.bypassed,
        program.written,
        original=original,
        absorbed=absorbed,
    )


def _absorbed(before: Program, after: Program, rewrites: Rewrites, same: Mapping[int, int]) -> dict[str, str]:
    """What became of the s-ops that are gone, or that their dependents no longer read: they cannot be set."""
    within: dict[int, dict[str, None]] = {}
    for number in rewrites:
        now = after.sops.get(same[number])
        if now is not None:
            inputs = now.inputs if now.id == number else (now.id,)
            for passed in _passed_by(before, before.sops[number], inputs):
                within.setdefault(passed, {})[before.sops[number].label] = None
    phrases = {}
    for number, node in before.sops.items():
        if same[number] != number:
            phrases[node.label] = f"the same as {before.sops[same[number]].label}"
        elif number in within:
            phrases[node.label] = f"part of {', '.join(within[number])}"
        elif number not in after.sops:
            phrases[node.label] = "not needed"
    return phrases


def _passed_by(program: Program, node: SOpNode, inputs: Collection[int]) -> set[int]:
    """The s-ops between an s-op and its new `inputs`; if it was attention, all s-ops it depended on, and `inputs`."""
    if isinstance(node.op, Linear):
        return set()
    tables = isinstance(node.op, Table)
    found: set[int] = set() if tables else set(inputs)
    stack = list(program.children(node))
    while stack:
        number = stack.pop()
        if tables and (number in inputs or not isinstance(program.sops[number].op, Table)):
            continue
        if number not in found:
            found.add(number)
            stack.extend(program.children(program.sops[number]))
    return found
