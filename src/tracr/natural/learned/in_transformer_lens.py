"""Learned models in TransformerLens, as models with all hook points or as its native bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.adapters.lens_weights import lens_config, lens_weights
from tracr.adapters.torch import as_dtype
from tracr.adapters.transformer_lens import LensModel, config, to_bridge
from tracr.natural.formats import require_format
from tracr.natural.learned.in_torch import OfLearned
from tracr.natural.learned.model import ACTIVATION
from tracr.runtime.uniform import uniform

if TYPE_CHECKING:
    from tracr.natural.learned.model import LearnedModel

__all__ = ["LensLearned", "to_transformer_lens"]


def to_transformer_lens(
    learned: LearnedModel, bridge: bool, dtype: Any, device: Any, trainable: bool, check: bool
) -> Any:
    """The learned model with all hook points, or as a bridge."""
    cfg = config({**lens_config(learned), "act_fn": ACTIVATION, "model_name": "tracr-learned"}, dtype, device)
    if not bridge:
        return LensLearned(learned, cfg, uniform(learned.parameters), dtype, device, trainable, check)
    if check:
        require_format(as_dtype(dtype), "the learned model")
    return to_bridge(cfg, lens_weights(learned), trainable)


class LensLearned(OfLearned, LensModel):
    """A learned model in TransformerLens: every hook point that its ground truth names, under those names."""
