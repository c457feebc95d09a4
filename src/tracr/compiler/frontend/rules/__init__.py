"""The rules of step 2: `state.py` holds what is known, the other files extend it by one kind of expression each."""

from tracr.compiler.frontend.rules import aggregation, elementwise, selection, sources
from tracr.compiler.frontend.rules.state import Inference, infer_node

__all__ = ["Inference", "aggregation", "elementwise", "infer_node", "selection", "sources"]
