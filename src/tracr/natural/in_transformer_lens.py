"""Twins in TransformerLens, as models with all hook points or as its native bridge.

Its name for layer norms without weights is "LNPre". They are modules here, because its tools call the last one and
read `hook_scale`. Where heads have separate inputs (`use_attn_in`, `use_split_qkv_input`), `ln1` has one scale for each
head, which its tools do not expect: `hook_scale` is filled only where heads share their input.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tracr.adapters.torch import as_dtype
from tracr.adapters.transformer_lens import LensModel, config, to_bridge
from tracr.natural.architecture import NORM_EPSILON
from tracr.natural.formats import require_format
from tracr.natural.in_torch import OfTwin

if TYPE_CHECKING:
    from tracr.ir.parameters import Parameters
    from tracr.natural.twin_model import TwinModel

__all__ = ["LensTwin", "to_transformer_lens"]

NORMS = ("ln1", "ln2", "ln_final")


def to_transformer_lens(twin: TwinModel, bridge: bool, dtype: Any, device: Any, trainable: bool, check: bool) -> Any:
    """The twin with all hook points, or as a bridge."""
    cfg = config(sizes(twin), dtype, device)
    if not bridge:
        return LensTwin(twin, cfg, twin.parameters, dtype, device, trainable, check)
    if check:
        require_format(as_dtype(dtype))
    return to_bridge(cfg, scaled(twin), trainable)


def sizes(twin: TwinModel) -> dict[str, Any]:
    """The arguments of a configuration of TransformerLens; BOS is one of the ids, so nothing may be prepended."""
    architecture, parameters = twin.architecture, twin.parameters
    return {
        "n_layers": architecture.layers,
        "d_model": architecture.width,
        "n_ctx": len(parameters.W_pos),
        "n_heads": architecture.heads,
        "d_head": architecture.d_head,
        "d_mlp": architecture.d_mlp,
        "d_vocab": len(parameters.W_E),
        "d_vocab_out": parameters.W_U.shape[1],
        "act_fn": architecture.activation,
        "normalization_type": "LNPre" if architecture.layer_norm else None,
        "eps": NORM_EPSILON,
        "attention_dir": "causal" if twin.teacher.options.causal else "bidirectional",
        "default_prepend_bos": False,
        "model_name": "tracr-twin",
    }


def scaled(twin: TwinModel) -> dict[str, NDArray[Any]]:
    """The state dict for attention that divides scores by √d_head."""
    root = math.sqrt(twin.architecture.d_head)
    layers = (replace(layer, W_Q=layer.W_Q * root, b_Q=layer.b_Q * root) for layer in twin.parameters.layers)
    weights = dict(replace(twin.parameters, layers=tuple(layers)).named())
    return {**weights, "unembed.b_U": np.zeros(twin.parameters.W_U.shape[1])}


class LensNorm(nn.Module):
    """A layer norm without weights, with TransformerLens's hook points."""

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        """The normalised stream [batch, position, d_model], or one for each head."""
        centred = stream - stream.mean(dim=-1, keepdim=True)
        scale = ((centred * centred).mean(dim=-1, keepdim=True) + NORM_EPSILON).sqrt()
        scale = self.hook_scale(scale) if stream.ndim == 3 else scale
        return self.hook_normalized(centred / scale)


class LensTwin(OfTwin, LensModel):
    """A twin in TransformerLens: every hook point that the teacher's ground truth names, under those names."""

    def _part(self, name: str) -> nn.Module:
        place, _, leaf = name.rpartition(".")
        parent = super()._part(place)
        if leaf in NORMS and not hasattr(parent, leaf):
            parent.add_module(leaf, LensNorm())
        return super()._part(name)

    def _activations(self, parameters: Parameters) -> list[str]:
        names = super()._activations(parameters)
        scales = [f"{name.rpartition('.')[0]}.hook_scale" for name in names if name.endswith("hook_normalized")]
        return names + scales

    def _functions(self) -> dict[str, Any]:
        """The forward pass leaves layer norms to `_see`, which knows their names."""
        found = super()._functions()
        return {**found, "norm": found["norm"] and _unchanged}

    def _see(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name.endswith("hook_normalized"):
            return self._part(name.rpartition(".")[0])(tensor)
        return super()._see(name, tensor)


def _unchanged(stream: Any, xp: Any) -> Any:
    return stream
