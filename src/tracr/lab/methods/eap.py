"""Edge attribution patching (EAP): a linear approximation of exact edge patching (Syed et al. 2023).

For an edge e = (w, r) and pairs (x, x') with w(x) the output of the writer and s_r the residual stream that r sees,
before its layer norm, the score is

    |mean over pairs of (w(x') - w(x)) · ∂m(L(x)) / ∂s_r|

summed over positions and dimensions, with m the metric of the logits L. Two forward passes and one backward pass per
pair, for all edges together. The derivative of ReLU at 0 is 0.

Checked against finite differences, against PyTorch's gradients, and score by score against auto-circuit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.edge_gradients import edge_gradients

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["eap"]


def eap(subject: Any, data: MethodData) -> dict[EdgeKey, float]:
    """The score of every edge of a subject; the metric must have weights."""
    return {key: abs(number) for key, number in edge_gradients(subject, data).attributions({}).items()}
