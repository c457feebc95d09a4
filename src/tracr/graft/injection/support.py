"""Which programs can run under a host's layer norm; the others are refused with the reason."""

from __future__ import annotations

import numpy as np

from tracr.compiler.selectors.conjunctions import SelectorLiteral, cover
from tracr.errors import CompileError
from tracr.ir.domains import Finite
from tracr.ir.ops import ERROR, Aggregation, IndicesOp, LengthOp, Linear, SumLookup
from tracr.ir.program import InferredNode, Tables
from tracr.ir.selectors import Selector

__all__ = ["literals_of", "refuse_unsupported"]

TOTAL = "make the function return a value for all values, None for example"
COMPARED = "compare values of one kind: give an aggregate that may find nothing a default such as 0 or 'nothing'"
NONE = type(None)


def refuse_unsupported(program: Tables) -> None:
    """Refuse a program that needs more than the circuit can do."""
    if not program.options.causal:
        raise CompileError(
            "the host is causal, and the program was compiled for attention in both directions",
            hint="compile it with causal=True, or pass the s-op itself",
        )
    if len(program.outputs) != 1:
        raise CompileError(
            f"the program has {len(program.outputs)} outputs, and the circuit answers with one",
            hint="inject one of them",
        )
    shortest, longest = program.lengths
    if shortest > 1:
        raise CompileError(
            f"the program takes inputs of {shortest} to {longest} tokens, and a text has all lengths",
            hint="write ConstantSOp(..., check_length=False), or a function of rasp.indices",
        )
    for node in program.sops.values():
        _check_values(program, node)
    for selector in program.selectors.values():
        table = getattr(selector, "table", None)
        if table is not None and (table == ERROR).any():
            raise CompileError("it raises for some values", expression=selector, hint=COMPARED)


def _check_values(program: Tables, node: InferredNode) -> None:
    if isinstance(node.op, LengthOp):
        raise CompileError(
            "a causal model does not know the length of its input",
            expression=node,
            hint="count the positions so far: SelectorWidth(Select(indices, indices, LEQ))",
        )
    if isinstance(node.op, Aggregation) and not node.op.copies:
        raise CompileError(
            "it averages several positions, and the layer norm divides each of them by a number of its own, which only "
            "a copy of one value can undo",
            expression=node,
            hint="count positions with SelectorWidth instead: counts are read from the attention to BOS",
        )
    if not isinstance(node.domain, Finite):
        raise CompileError(
            f"its values are not listed: {node.domain.reason}",
            expression=node,
            hint="use counts and tables of them, or a smaller max_seq_len",
        )
    if node.op.cells is not None and (node.op.cells == ERROR).any():
        raise CompileError("it raises for some values", expression=node, hint=TOTAL)
    if isinstance(node.op, Linear | SumLookup):
        missing = [number for number, _ in node.op.terms if NONE in _kinds(program.sops[number])]
        if missing:
            raise CompileError(
                f"{program.sops[missing[0]].label} may be None, which has no place in a sum",
                expression=node,
                hint="give the aggregate a default",
            )


def _kinds(node: InferredNode) -> frozenset[type]:
    return node.domain.kinds if isinstance(node.domain, Finite) else frozenset()


def literals_of(program: Tables, selector: Selector) -> tuple[SelectorLiteral, ...]:
    """The conditions that together are the selector; those that the causal mask implies are left out."""
    conjunctions = cover(program.selectors, selector.id)
    if conjunctions is None or len(conjunctions) != 1:
        raise CompileError(
            "it is an 'or' of conditions on different s-ops, and a head can only say 'and'",
            expression=selector,
            hint="count each part on its own and add the counts, or compute the condition as an s-op first",
        )
    return tuple(one for one in conjunctions[0].literals if not _implied(program, one))


def _implied(program: Tables, literal: SelectorLiteral) -> bool:
    """Whether the condition holds for every key that is not after its query."""
    positions = all(isinstance(program.sops[one].op, IndicesOp) for one in (literal.keys, literal.queries))
    return positions and bool(literal.selected[np.tri(*literal.selected.shape, dtype=np.bool_)].all())
