"""Sparse autoencoders: x is about code W_dec + b_dec, with few codes that are not 0 (`coder.py` has the formulas).

sae-l1        a penalty on the sum of codes (Bricken et al. 2023, "Towards monosemanticity")
sae-topk      the k largest codes of a token (Gao et al. 2024, "Scaling and evaluating sparse autoencoders")
sae-jumprelu  a penalty on the number of codes above thresholds that are trained (Rajamanoharan et al. 2024, "Jumping
              ahead")

`width` is the number of atoms, in units of the number of true features. Training: `coder_training.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.arguments import number
from tracr.extras import need
from tracr.lab.features.found import FoundDictionary

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData

__all__ = ["atoms_of", "sae_jumprelu", "sae_l1", "sae_topk"]


def atoms_of(data: FeatureData, width: float) -> int:
    """The number of atoms of a dictionary."""
    return max(1, round(data.atoms * number("width", width, above=0)))


def sae_l1(
    subject: Any,
    data: FeatureData,
    *,
    width: float = 1.0,
    penalty: float = 0.4,
    steps: int = 2_000,
    rate: float = 3e-3,
    seed: int = 0,
) -> FoundDictionary:
    """The SAE with a penalty on codes."""
    return _trained("l1", data, width, penalty, steps, rate, seed)


def sae_topk(
    subject: Any,
    data: FeatureData,
    *,
    width: float = 1.0,
    k: int = 2,
    steps: int = 2_000,
    rate: float = 3e-3,
    seed: int = 0,
) -> FoundDictionary:
    """The SAE that keeps the largest codes."""
    return _trained("topk", data, width, k, steps, rate, seed)


def sae_jumprelu(
    subject: Any,
    data: FeatureData,
    *,
    width: float = 1.0,
    penalty: float = 0.05,
    steps: int = 2_000,
    rate: float = 3e-3,
    seed: int = 0,
) -> FoundDictionary:
    """The SAE with trained thresholds."""
    return _trained("jumprelu", data, width, penalty, steps, rate, seed)


def _trained(
    kind: str, data: FeatureData, width: float, sparsity: float, steps: int, rate: float, seed: int
) -> FoundDictionary:
    for library in ("jax", "optax"):
        need(library, "jax")
    from tracr.lab.features.coder_training import CoderRecipe, train_coders

    recipe = CoderRecipe(kind, atoms_of(data, width), steps, rate=rate)
    given = data.activations[None]
    return train_coders(recipe, given, given, [sparsity], [seed])[0][0].found()
