"""Weights in the form that TransformerLens users expect: stacked over layers, QK and OV circuits, composition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from transformer_lens import FactoredMatrix
from transformer_lens.utilities import composition_scores

from tracr.errors import InputError
from tracr.ir.parameters import Parameters

__all__ = ["LensCircuits"]


class LensCircuits:
    """The quantities computed from the weights alone."""

    if TYPE_CHECKING:
        cfg: Any
        blocks: Any
        weights: Callable[[], Parameters]
        W_E: torch.Tensor
        W_pos: torch.Tensor
        W_U: torch.Tensor
        W_Q: torch.Tensor
        W_K: torch.Tensor
        W_V: torch.Tensor
        W_O: torch.Tensor

    def __getattr__(self, name: str) -> Any:
        """`W_E`, `W_pos`, `W_U`, and the weights of all layers stacked: `W_Q` [layer, head, d_model, d_head], ..."""
        if name[:2] not in ("W_", "b_"):
            return super().__getattr__(name)  # type: ignore[misc]
        weights = self.weights()
        if hasattr(weights, name):
            return getattr(weights, name)
        if weights.layers and hasattr(weights.layers[0], name):
            return torch.stack([getattr(layer, name) for layer in weights.layers])
        return super().__getattr__(name)  # type: ignore[misc]

    @property
    def b_U(self) -> torch.Tensor:
        """The unembedding has no bias."""
        return torch.zeros_like(self.W_U[0])

    @property
    def W_E_pos(self) -> torch.Tensor:
        """The embeddings of tokens and of positions, one above the other."""
        return torch.cat([self.W_E, self.W_pos])

    @property
    def QK(self) -> FactoredMatrix:
        """W_Q W_K^T of every head, [layer, head, d_model, d_model]; scores are not divided by √d_head here."""
        return FactoredMatrix(self.W_Q, self.W_K.transpose(-2, -1))

    @property
    def OV(self) -> FactoredMatrix:
        """W_V W_O of every head, [layer, head, d_model, d_model]."""
        return FactoredMatrix(self.W_V, self.W_O)

    def all_composition_scores(self, mode: str) -> torch.Tensor:
        """How much each head reads of an earlier head's output, [layer, head, later layer, head]: "Q", "K" or "V".

        The scores are those of *A Mathematical Framework for Transformer Circuits*, from the weights alone. Two heads
        may have a score without an edge of `ground_truth` between them, if they use the same direction, such as BOS.
        """
        readers = {"Q": lambda: self.QK, "K": lambda: self.QK.T, "V": lambda: self.OV}
        if mode not in readers:
            raise InputError(f"there is no composition {mode!r}", hint='use "Q", "K" or "V"')
        scores = composition_scores(self.OV, readers[mode](), broadcast_dims=True)
        layer = torch.arange(self.cfg.n_layers, device=scores.device)
        earlier = layer[:, None, None, None] < layer[None, None, :, None]
        return torch.where(earlier, scores.nan_to_num(), 0)  # the zero heads that pad layers have no scores

    @property
    def all_head_labels(self) -> list[str]:
        """ "L0H0" and so on."""
        return [f"L{layer}H{head}" for layer in range(self.cfg.n_layers) for head in range(self.cfg.n_heads)]

    def accumulated_bias(self, layer: int, mlp_input: bool = False, include_mlp_biases: bool = True) -> torch.Tensor:
        """The sum of the output biases of all blocks before `layer`, and, with `mlp_input`, of its attention."""
        total = torch.zeros_like(self.W_U[:, 0])
        for number, block in enumerate(self.blocks):
            if number < layer or (number == layer and mlp_input):
                total = total + block.attn.b_O
            if number < layer and include_mlp_biases:
                total = total + block.mlp.b_out
        return total
