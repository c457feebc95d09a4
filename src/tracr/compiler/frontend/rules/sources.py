"""Infer s-ops without inputs: tokens, indices, length and constants."""

from __future__ import annotations

import numpy as np

from tracr.compiler.frontend.rules.facts import SHAPE, TOKENS
from tracr.compiler.frontend.rules.state import Inference, infer_node
from tracr.compiler.frontend.trace import TracedNode
from tracr.errors import CompileError
from tracr.ir.domains import finite
from tracr.ir.ops import ERROR, Constant, IndicesOp, LengthOp, Positions, TokensOp
from tracr.rasp.expressions import ConstantSOp, Full, Indices, Length, Tokens

__all__: list[str] = []


@infer_node.register
def _(expr: Tokens, inference: Inference, node: TracedNode) -> None:
    domain = finite(inference.options.vocab, ordered=True)
    inference.add(
        node.id,
        node.label,
        expr,
        TokensOp(),
        domain,
        key=None,
        leaves=(TOKENS,),
        joint=lambda: domain.codes,
        determines=frozenset({TOKENS}),
    )


@infer_node.register
def _(expr: Indices, inference: Inference, node: TracedNode) -> None:
    domain = finite(range(inference.options.max_seq_len), ordered=True)
    small = inference.shape.listed
    inference.add(
        node.id,
        node.label,
        expr,
        IndicesOp(),
        domain,
        key=None,
        leaves=(SHAPE,) if small else (),
        joint=(lambda: inference.shape.positions) if small else None,
        distinct=True,
    )


@infer_node.register
def _(expr: Length, inference: Inference, node: TracedNode) -> None:
    if inference.options.causal:
        raise CompileError(
            "the length of the input depends on the future, which a causal model does not see",
            expression=expr,
            hint="rasp.indices + 1 is the number of tokens so far",
        )
    shortest, longest = inference.lengths
    domain = finite(range(shortest, longest + 1), ordered=True)
    small = inference.shape.listed
    inference.add(
        node.id,
        node.label,
        expr,
        LengthOp(),
        domain,
        key=None,
        leaves=(SHAPE,) if small else (),
        joint=(lambda: inference.shape.lengths - np.int32(shortest)) if small else None,
    )


@infer_node.register
def _(expr: Full, inference: Inference, node: TracedNode) -> None:
    domain = finite([expr.fill])
    inference.add(node.id, node.label, expr, Constant(), domain, key=None, joint=lambda: np.zeros((), dtype=np.int32))


@infer_node.register
def _(expr: ConstantSOp, inference: Inference, node: TracedNode) -> None:
    domain = finite(expr.value)
    table = np.full(inference.options.max_seq_len, ERROR, dtype=np.int32)
    longest = min(len(table), len(expr.value))
    table[:longest] = [domain.index[value] for value in expr.value[:longest]]
    inference.add(
        node.id,
        node.label,
        expr,
        Positions(table),
        domain,
        key=table.tobytes(),
        leaves=(SHAPE,),
        joint=(lambda: table[inference.shape.positions]) if inference.shape.listed else None,
    )
