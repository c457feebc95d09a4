"""EAP with integrated gradients over the inputs (Hanna et al. 2024, "Have faith in faithfulness").

As EAP, but the gradient is a mean over passes whose embedding is between that of the corrupted input x' and that of the
clean input x. With E(x) the embedding (token and position), s_r the residual stream that the reader sees before its
layer norm, and L(z) the logits of a pass that begins with the embedding z, the score of an edge (w, r) is

    |mean over pairs of (w(x') - w(x)) · (1/n) Σ_k ∂m(L(z_k)) / ∂s_r|,   z_k = E(x') + (k/n) (E(x) - E(x')),   k = 1 … n

Two forward passes, and n forward and backward passes, per pair.

Checked against PyTorch's gradients. auto-circuit has another method of this name: it
interpolates the masks of all edges together. Therefore it is not compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.arguments import whole
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.edge_gradients import edge_gradients

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["eap_ig_inputs"]


def eap_ig_inputs(subject: Any, data: MethodData, *, steps: int = 10) -> dict[EdgeKey, float]:
    """The score of every edge of a subject; the metric must have weights. `steps` is n above."""
    steps, own = whole("steps", steps, 1), edge_gradients(subject, data)
    clean, corrupted = own.both.clean.written["embed"], own.both.corrupted.written["embed"]
    passes = [own.attributions({"embed": corrupted + k / steps * (clean - corrupted)}) for k in range(1, steps + 1)]
    return {key: abs(sum(found[key] for found in passes)) / steps for key in passes[0]}
