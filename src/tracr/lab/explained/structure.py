"""The structure of a program: its counts, copies and means, each with what its selector compares.

Each is described by its kind ("count", "copy" or "average") and by its selector: the comparison that its table holds,
and for both sides whether they are the tokens, the positions or computed. Structures are compared as collections.
Not seen: functions of variables, which computed variable is read, the order of the steps, and the values that are
copied. Programs with the same structure may compute different things, and the other way round.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from tracr.explaining.selections import relation
from tracr.ir.ops import Aggregation, Constant, IndicesOp, LengthOp, TokensOp, Width
from tracr.ir.program import Program
from tracr.ir.selectors import CompositeNode

__all__ = ["match", "structure"]

ALL = "all positions"


def structure(program: Program) -> Counter[str]:
    """Every count, copy and mean of a program, as text.

    >>> import tracr
    >>> from tracr.rasp import programs
    >>> dict(structure(tracr.compile(programs.make_hist(), vocab="ab", max_seq_len=3).program))
    {'count: tokens == tokens': 1}
    """
    found: Counter[str] = Counter()
    for node in program.sops.values():
        match node.op:
            case LengthOp():
                found[f"count: {ALL}"] += 1
            case Width(selector=selector):
                found[f"count: {_compared(program, selector)}"] += 1
            case Aggregation(selector=selector, copies=copies):
                found[f"{'copy' if copies else 'average'}: {_compared(program, selector)}"] += 1
    return found


def match(first: Counter[str], second: Counter[str]) -> float:
    """What two structures have in common: 2 |A ∩ B| / (|A| + |B|), counted with repetitions; 1 if both are empty."""
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0


def _compared(program: Program, number: int) -> str:
    chosen = program.selectors[number]
    if isinstance(chosen, CompositeNode):
        sides = sorted(_compared(program, part) for part in chosen.parts)
        return f"not ({sides[0]})" if chosen.kind == "not" else f"({f') {chosen.kind} ('.join(sides)})"
    if (chosen.table[chosen.table >= 0] == 1).all():
        return ALL
    keys, queries = _side(program, chosen.keys), _side(program, chosen.queries)
    if queries == "constant" or (np.ptp(chosen.table, axis=0) == 0).all():
        return f"a condition on {keys}"
    found = relation(program, chosen)
    if found is None:
        return f"{keys} fits {queries}"
    offset = f" {'-' if found.offset < 0 else '+'} {abs(found.offset)}" if found.offset else ""
    return f"{keys} {found.symbol} {queries}{offset}"


def _side(program: Program, number: int) -> str:
    match program.sops[number].op:
        case TokensOp():
            return "tokens"
        case IndicesOp():
            return "positions"
        case Constant():
            return "constant"
        case _:
            return "computed"
