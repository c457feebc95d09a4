"""The pass `simplify`: simpler operations where inputs are constant or known from the position alone.

- A table of two s-ops that depends on only one becomes a table of that one. A table of an s-op and itself becomes a
  table of its diagonal.
- The constant terms of a weighted sum are added to its constant.
- An operation that returns its input unchanged is replaced by its input.
- An operation that does not depend on tokens is computed at compile time: a width or a mean that depends only on the
  position becomes a table of the position, one that depends only on the length a table of the length. It needs no head.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracr.compiler.program.share import drop_unused
from tracr.ir.domains import Codes, Finite
from tracr.ir.ops import (
    Aggregation,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    Op,
    PairLookup,
    Positions,
    Width,
    formula,
)
from tracr.ir.program import Program, SOpNode
from tracr.ir.switches import PassName
from tracr.rasp.annotations import Encoding
from tracr.rasp.function_text import UNKNOWN, applied
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import is_number

__all__ = ["simplify"]

LONGEST_TRIED = 128  # inputs of every length up to here are tried


def simplify(program: Program) -> dict[int, Op | int]:
    """The rewrites: simpler operations, and s-ops that equal another."""
    found: dict[int, Op | int] = {}
    placed = _without_tokens(program)
    for node in program.sops.values():
        if node.domain.size == 1:
            continue  # a constant already
        op = placed.get(node.id) or _simpler(program, node)
        source = _unchanged(program, node, op or node.op)
        if source is not None:
            found[node.id] = source
        elif op is not None:
            found[node.id] = op
    return found


def _simpler(program: Program, node: SOpNode) -> Op | None:
    match node.op:
        case PairLookup(fst=fst, snd=snd, table=table, function=function):
            if fst == snd:
                return Lookup(fst, table.diagonal().copy(), applied(formula(function), ["x", "x"]))
            for number, side in ((fst, table), (snd, table.T)):
                codes = _rows_agree(side)
                if codes is not None:
                    return Lookup(number, codes, UNKNOWN)
        case Linear(terms=terms, constant=constant):
            known = {number: _constant(program.sops[number]) for number, _ in terms}
            varying = tuple(term for term in terms if known[term[0]] is None)
            if 0 < len(varying) < len(terms):
                return Linear(varying, constant + sum(factor * (known[number] or 0.0) for number, factor in terms))
    return None


def _rows_agree(table: Codes) -> Codes | None:
    """The code of each row, if every row has only one; cells that are unreached or raise agree with every code."""
    codes: Codes = table.max(axis=1)
    return codes if ((table == codes[:, None]) | (table < 0)).all() else None


def _constant(node: SOpNode) -> float | None:
    if isinstance(node.domain, Finite) and len(node.domain) == 1 and is_number(node.domain.values[0]):
        return float(node.domain.values[0])
    return None


def _unchanged(program: Program, node: SOpNode, op: Op) -> int | None:
    """The input of an operation that returns it unchanged, with the same codes."""
    match op:
        case Lookup(inner=source, table=table):
            if (table != np.arange(len(table))).any():
                return None
        case Linear(terms=((source, 1.0),), constant=0.0):
            pass
        case _:
            return None
    held, given = node.domain, program.sops[source].domain
    if not (isinstance(held, Finite) and isinstance(given, Finite)) or held.values != given.values:
        return None
    return source if node.encoding is program.sops[source].encoding else None


def _without_tokens(program: Program) -> dict[int, Op]:
    """Tables of the position or the length, for attention that depends on nothing else."""
    wanted = [
        node
        for node in _reading_no_tokens(program)
        if isinstance(node.op, Width | Aggregation) and isinstance(node.domain, Finite)
    ]
    shortest, longest = program.lengths
    if not wanted or longest > LONGEST_TRIED:
        return {}
    part = drop_unused(replace(program, outputs=tuple((node.label, node.id) for node in wanted)))
    inputs = [[program.options.vocab[0]] * length for length in range(shortest, longest + 1)]
    evaluation = evaluate_batch(part, inputs)
    if evaluation.errors.any():
        return {}
    found: dict[int, Op] = {}
    for node in wanted:
        codes = np.broadcast_to(evaluation.codes[node.id], evaluation.batch.codes.shape)
        op = _by_place(program, node, np.where(evaluation.batch.valid, codes, -1))
        if op is not None and node.domain.size > 1:
            found[node.id] = op
    return found


def _reading_no_tokens(program: Program) -> list[SOpNode]:
    """The s-ops that do not depend on the tokens."""
    free: set[int] = set()
    for node in program.sops.values():
        children = program.children(node)
        fixed = bool(children) or isinstance(node.op, IndicesOp | LengthOp | Constant | Positions)
        if fixed and free.issuperset(children):
            free.add(node.id)
    return [program.sops[number] for number in free]


def _by_place(program: Program, node: SOpNode, codes: Codes) -> Op | None:
    """A table of the position or the length; `codes[length, position]` are -1 where there is no token."""
    by_position = _rows_agree(codes.T)
    if by_position is not None:
        indices = _before(program, node, IndicesOp)
        if indices is not None and program.options.on(PassName.FOLD):
            return Lookup(indices, by_position.astype(np.int32), UNKNOWN)
        return Positions(by_position.astype(np.int32))
    by_length, length = _rows_agree(codes), _before(program, node, LengthOp)
    if by_length is not None and length is not None:
        return Lookup(length, by_length.astype(np.int32), UNKNOWN)
    return None


def _before(program: Program, node: SOpNode, kind: type[Op]) -> int | None:
    """The number of a one-hot s-op with this kind of operation that comes before a node."""
    for number, other in program.sops.items():
        if number == node.id:
            return None
        if isinstance(other.op, kind) and other.encoding is Encoding.CATEGORICAL:
            return number
    return None
