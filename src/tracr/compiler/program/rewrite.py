"""Between steps 2 and 3: the same program in fewer operations.

Each pass proposes rewrites: for an s-op another operation that computes the same, or an s-op that is the same. They are
kept only if the model becomes smaller: fewer layers and no more parameters, or fewer of something (layers, dimensions,
heads, parameters) and no more of anything. What cannot be compiled any more is not kept either. All are tried together
first, then one after the other.

Only what is compiled changes. The program a model is checked against, and shown as, stays as it was inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from tracr.compiler.program.functions_of_sums import sums
from tracr.compiler.program.fuse_tables import fuse_maps
from tracr.compiler.program.share import drop_unused, share
from tracr.compiler.program.simplify import simplify
from tracr.ir.ops import Linear, Op, Table
from tracr.ir.program import Program, SOpNode
from tracr.ir.size import Measure, Size

__all__ = ["rewritten"]

Rewrites = Mapping[int, Op | int]


RULES: tuple[tuple[str, Callable[[Program], Rewrites]], ...] = (
    ("simplify", simplify),
    ("fuse", fuse_maps),
    ("sums", sums),
)
MOST_TRIALS = 32
MOST_TRIED = 2048  # s-ops, those of all trials together


def rewritten(program: Program, size: Measure) -> Program:
    """The program after the passes that are on, as far as they make its model smaller."""
    smallest: Size | None = None
    for name, rule in RULES:
        rewrites = rule(program) if program.options.on(name) else {}
        if rewrites:
            smallest = smallest or size(program, None)
            program, smallest = _improved(program, rewrites, size, smallest)
    return program


def _improved(program: Program, rewrites: Rewrites, size: Measure, before: Size | None) -> tuple[Program, Size | None]:
    best, smallest = program, before
    kept: dict[int, Op | int] = {}
    single = [{number: rewrite} for number, rewrite in rewrites.items()] if len(rewrites) > 1 else []
    for trial in [dict(rewrites), *single[: min(MOST_TRIALS, MOST_TRIED // len(program.sops))]]:
        candidate = _applied(program, {**kept, **trial})
        reached = size(candidate, smallest.layers if smallest else None)
        if _smaller(reached, smallest):
            best, smallest, kept = candidate, reached, {**kept, **trial}
            if len(kept) == len(rewrites):
                break
    return best, smallest


def _smaller(size: Size | None, before: Size | None) -> bool:
    if size is None or before is None:
        return size is not None
    if size.parameters > before.parameters:
        return False
    no_larger = all(new <= old for new, old in zip(size, before, strict=True))
    return size.layers < before.layers or (no_larger and size != before)


def _applied(program: Program, rewrites: Rewrites) -> Program:
    same = {number: number for number in (*program.sops, *program.selectors)}
    sops = dict(program.sops)
    for number, rewrite in rewrites.items():
        if isinstance(rewrite, int):
            same[number] = same[rewrite]
        else:
            sops[number] = replace(sops[number], op=rewrite)
    changed = drop_unused(share(replace(program, sops=sops, same=same)))
    absorbed = dict(program.absorbed)
    for label, where in _absorbed(program, changed, rewrites, same).items():
        absorbed[label] = f"{absorbed[label]}; {where}" if label in absorbed else where
    return replace(changed, absorbed=absorbed)


def _absorbed(before: Program, after: Program, rewrites: Rewrites, same: Mapping[int, int]) -> dict[str, str]:
    """Where the s-ops went that are gone, or that others are computed without now: these can no longer be set."""
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
    """What an s-op was computed from, down to its `inputs` now; where that was attention all of it, and these too."""
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
