"""EAP with integrated gradients over activations, as in MIB (Mueller et al. 2025, after Marks et al. 2024).

As EAP, but the gradient is a mean over passes in which one sub-layer writes an output between that on the corrupted
input x' and that on the clean input x. Sub-layers are the embedding, all heads of a layer together, and an MLP. With
s_r the residual stream that the reader sees before its layer norm, and L_ik the logits on x when sub-layer i writes
o_i(x') + (k/n) (o_i(x) - o_i(x')), the score of an edge (w, r) is

    |mean over pairs of (w(x') - w(x)) · (1/(I n)) Σ_i Σ_k ∂m(L_ik) / ∂s_r|,   i = 1 … I,   k = 1 … n

The given output does not depend on earlier layers: no gradient passes through sub-layer i. Two forward passes, and I n
forward and backward passes, per pair.

Checked against PyTorch's gradients; auto-circuit has no such method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.arguments import whole
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.edge_gradients import edge_gradients

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["eap_ig_activations"]


def eap_ig_activations(subject: Any, data: MethodData, *, steps: int = 5) -> dict[EdgeKey, float]:
    """The score of every edge of a subject; the metric must have weights. `steps` is n above."""
    steps, own = whole("steps", steps, 1), edge_gradients(subject, data)
    clean, corrupted = own.sublayers(own.both.clean.written), own.sublayers(own.both.corrupted.written)
    passes = [
        own.attributions({name: corrupted[name] + k / steps * (clean[name] - corrupted[name])})
        for k in range(1, steps + 1)
        for name in clean
    ]
    return {key: abs(sum(found[key] for found in passes)) / len(passes) for key in passes[0]}
