"""What the program's selectors select on an input, as the interpreters say: the design of the model's heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.trace import Graph
from tracr.compiler.vectorised import evaluate_batch
from tracr.rasp.expressions import Selector
from tracr.rasp.interpreter import CausalEvaluator, DefaultRASPEvaluator
from tracr.rasp.values import Value

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["selected"]

Matrix = NDArray[np.bool_]


def selected(model: CompiledModel, tokens: Sequence[Value]) -> dict[str, Matrix]:
    """Which keys [query, key] every selector of the program selects, by the selector's label.

    The reference interpreter says so; for a loaded model, whose expressions are gone, the tables of its selectors.
    """
    size = len(tokens)
    everything = np.ones((size, size), dtype=bool)
    found = {"everything": np.tril(everything) if model.options.causal else everything}
    if isinstance(model.graph, Graph):
        evaluator = CausalEvaluator() if model.options.causal else DefaultRASPEvaluator()
        nodes = [node for node in model.graph.nodes if isinstance(node.expr, Selector)]
        results = evaluator.evaluate_all([node.expr for node in nodes], tokens)
        return found | {node.label: np.array(results[node.expr], dtype=bool).reshape(size, size) for node in nodes}
    codes = evaluate_batch(model.typed, [tokens]).codes
    for selector in model.typed.selectors.values():
        queries, keys = (np.broadcast_to(codes[side], (1, size))[0] for side in (selector.queries, selector.keys))
        chosen = selector.table[np.maximum(queries, 0)[:, None], np.maximum(keys, 0)[None, :]] == 1
        found[selector.label] = np.tril(chosen) if model.options.causal else chosen
    return found
