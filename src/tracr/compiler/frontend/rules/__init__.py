"""The rules of the pass `infer`. `state.py` holds the results so far; the other files handle kinds of expressions."""

from tracr.compiler.frontend.rules import aggregation, elementwise, selection, sources
from tracr.compiler.frontend.rules.state import Inference, infer_node

__all__ = ["Inference", "aggregation", "elementwise", "infer_node", "selection", "sources"]
