"""Sizes and weights in TransformerLens's format, for its `HookedTransformer` (2 and 3) and `TransformerBridge` (4).

All layers have the same size, and the query weights are multiplied by √d_head, because its attention divides by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.model.variants.layer_norm import require_plain_norms
from tracr.runtime.uniform import common_sizes, uniform

if TYPE_CHECKING:
    from tracr.model.running import RunnableModel

__all__ = ["lens_config", "lens_weights"]


def lens_config(model: RunnableModel) -> dict[str, Any]:
    """The arguments of its configuration; BOS is one of the ids, so nothing may be prepended."""
    require_plain_norms(model, "a model of TransformerLens")
    sizes = common_sizes(model.parameters)
    return {
        "n_layers": model.n_layers,
        "d_model": model.d_model,
        "n_ctx": model.vocabulary.longest + 1,
        "n_heads": sizes.heads,
        "d_head": sizes.d_head,
        "d_mlp": sizes.d_mlp,
        "d_vocab": len(model.vocabulary.ids),
        "d_vocab_out": model.parameters.W_U.shape[1],
        "act_fn": "relu",
        "normalization_type": None,
        "attention_dir": "causal" if model.options.causal else "bidirectional",
        "default_prepend_bos": False,
        "model_name": "tracr",
    }


def lens_weights(model: RunnableModel) -> dict[str, NDArray[Any]]:
    """The state dict, in float64."""
    require_plain_norms(model, "a model of TransformerLens")
    weights = dict(uniform(model.parameters, scaled=True).named())
    return {**weights, "unembed.b_U": np.zeros(model.parameters.W_U.shape[1])}
