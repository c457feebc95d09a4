"""The keys selected by each selector of the program on an input, computed by the interpreters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracr.ir.program import Program
from tracr.ir.selectors import SelectorNode, parts_of
from tracr.rasp.expressions import Selector
from tracr.rasp.interpreter import CausalEvaluator, DefaultRASPEvaluator
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["selected"]

Matrix = NDArray[np.bool_]


def selected(model: DesignedModel, tokens: Sequence[Value]) -> dict[str, Matrix]:
    """The selected keys [query, key] of every selector of the program, by the selector's label.

    Computed by the reference interpreter, or for a loaded model, which has no expressions, from the selectors' tables.
    """
    size = len(tokens)
    everything = np.ones((size, size), dtype=bool)
    found = {"everything": np.tril(everything) if model.options.causal else everything}
    if model.expressions:
        evaluator = CausalEvaluator() if model.options.causal else DefaultRASPEvaluator()
        nodes = zip(model.graph.nodes, model.expressions, strict=True)
        selectors = {node.label: expr for node, expr in nodes if isinstance(expr, Selector)}
        results = evaluator.evaluate_all(list(selectors.values()), tokens)
        return found | {
            label: np.array(results[expr], dtype=bool).reshape(size, size) for label, expr in selectors.items()
        }
    matrices = _from_tables(model.program, tokens)
    labels = {selector.label: matrices[number] for number, selector in model.program.selectors.items()}
    return found | {label: np.tril(matrix) if model.options.causal else matrix for label, matrix in labels.items()}


def _from_tables(program: Program, tokens: Sequence[Value]) -> dict[int, Matrix]:
    """The selected keys of every selector without a causal mask, from the tables and their combinations."""
    codes = evaluate_batch(program, [tokens]).codes
    found: dict[int, Matrix] = {}
    for number in program.selectors:
        for part in parts_of(program.selectors, number):
            if isinstance(part, SelectorNode):
                sides = (np.broadcast_to(codes[side], (1, len(tokens)))[0] for side in (part.queries, part.keys))
                queries, keys = (np.maximum(side, 0) for side in sides)
                found[part.id] = part.table[queries[:, None], keys[None, :]] == 1
            else:
                first, last = found[part.parts[0]], found[part.parts[-1]]
                found[part.id] = ~first if part.kind == "not" else first & last if part.kind == "and" else first | last
    return found
