"""Simplification, the pass `simplify`: operations on what is constant, or known from the position alone.

- A table of two s-ops that depends on one of them is a table of that one; of an s-op and itself, of its diagonal.
- The constant terms of a weighted sum are part of its constant.
- What returns its input unchanged is its input.
- What no token influences is known at compile time: a width or a mean that depends on the position only is a table of
  the position, one that depends on the length only a table of the length. No head is needed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracr.compiler.domains import Codes, Finite
from tracr.compiler.share import drop_unused
from tracr.compiler.typed import (
    Aggregation,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    Op,
    PairLookup,
    Positions,
    SOpNode,
    TokensOp,
    Typed,
    Width,
)
from tracr.compiler.vectorised import evaluate_batch
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import is_number

__all__ = ["simplify"]

LONGEST = 128  # inputs of every length up to here are tried


def simplify(typed: Typed) -> dict[int, Op | int]:
    """Simpler operations, and s-ops that are the same as another."""
    found: dict[int, Op | int] = {}
    placed = _without_tokens(typed)
    for node in typed.sops.values():
        if node.domain.size == 1:
            continue  # a constant already
        op = placed.get(node.id) or _simpler(typed, node)
        source = _unchanged(typed, node, op or node.op)
        if source is not None:
            found[node.id] = source
        elif op is not None:
            found[node.id] = op
    return found


def _simpler(typed: Typed, node: SOpNode) -> Op | None:
    match node.op:
        case PairLookup(fst=fst, snd=snd, table=table, function=function):
            if fst == snd:
                return Lookup(fst, table.diagonal().copy(), function)
            for number, side in ((fst, table), (snd, table.T)):
                codes = _rows_agree(side)
                if codes is not None:
                    return Lookup(number, codes, function)
        case Linear(terms=terms, constant=constant):
            known = {number: _constant(typed.sops[number]) for number, _ in terms}
            varying = tuple(term for term in terms if known[term[0]] is None)
            if 0 < len(varying) < len(terms):
                return Linear(varying, constant + sum(factor * (known[number] or 0.0) for number, factor in terms))
    return None


def _rows_agree(table: Codes) -> Codes | None:
    """The code of each row, if it has one only; cells that no input leads to, or that raise, agree with all."""
    codes: Codes = table.max(axis=1)
    return codes if ((table == codes[:, None]) | (table < 0)).all() else None


def _constant(node: SOpNode) -> float | None:
    if isinstance(node.domain, Finite) and len(node.domain) == 1 and is_number(node.domain.values[0]):
        return float(node.domain.values[0])
    return None


def _unchanged(typed: Typed, node: SOpNode, op: Op) -> int | None:
    """The input of an operation that returns it as it is, in the same code."""
    match op:
        case Lookup(inner=source, table=table):
            if (table != np.arange(len(table))).any():
                return None
        case Linear(terms=((source, 1.0),), constant=0.0):
            pass
        case _:
            return None
    held, given = node.domain, typed.sops[source].domain
    if not (isinstance(held, Finite) and isinstance(given, Finite)) or held.values != given.values:
        return None
    return source if node.encoding is typed.sops[source].encoding else None


def _without_tokens(typed: Typed) -> dict[int, Op]:
    """Tables of the position or the length for attention that depends on nothing else."""
    free: set[int] = set()
    for node in typed.sops.values():
        if not isinstance(node.op, TokensOp) and free.issuperset(typed.children(node)):
            free.add(node.id)
    nodes = [typed.sops[number] for number in free]
    wanted = [n for n in nodes if isinstance(n.op, Width | Aggregation) and isinstance(n.domain, Finite)]
    shortest, longest = typed.lengths
    if not wanted or longest > LONGEST:
        return {}
    part = drop_unused(replace(typed, outputs=tuple((node.label, node.id) for node in wanted)))
    inputs = [[typed.options.vocab[0]] * length for length in range(shortest, longest + 1)]
    evaluation = evaluate_batch(part, inputs)
    if evaluation.errors.any():
        return {}
    found: dict[int, Op] = {}
    for node in wanted:
        codes = np.broadcast_to(evaluation.codes[node.id], evaluation.batch.codes.shape)
        op = _by_place(typed, node, np.where(evaluation.batch.valid, codes, -1))
        if op is not None and node.domain.size > 1:
            found[node.id] = op
    return found


def _by_place(typed: Typed, node: SOpNode, codes: Codes) -> Op | None:
    """A table of the position or the length; `codes[length, position]` are -1 where there is no token."""
    by_position = _rows_agree(codes.T)
    if by_position is not None:
        indices = _before(typed, node, IndicesOp)
        if indices is not None and typed.options.on("fold"):
            return Lookup(indices, by_position.astype(np.int32), "of the position")
        return Positions(by_position.astype(np.int32))
    by_length, length = _rows_agree(codes), _before(typed, node, LengthOp)
    if by_length is not None and length is not None:
        return Lookup(length, by_length.astype(np.int32), "of the length")
    return None


def _before(typed: Typed, node: SOpNode, kind: type[Op]) -> int | None:
    """A one-hot s-op of a kind that stands before a node."""
    for number, other in typed.sops.items():
        if number == node.id:
            return None
        if isinstance(other.op, kind) and other.encoding is Encoding.CATEGORICAL:
            return number
    return None
