"""The methods of the track "features", by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tracr.lab.features.dictionary import dictionary_learning
from tracr.lab.features.ica import ica
from tracr.lab.features.nmf import nmf
from tracr.lab.features.null_atoms import data_atoms, random_atoms
from tracr.lab.features.pca import pca
from tracr.lab.features.references import supervised, true_features
from tracr.lab.features.sparse_autoencoders import sae_jumprelu, sae_l1, sae_topk
from tracr.lab.features.transcoder import transcoder
from tracr.lab.methods.registry import Method
from tracr.lab.track import FEATURES

__all__ = ["FEATURE_METHODS"]

JAX = ("jax", "optax")
CODER = {"width": 1.0, "steps": 2_000, "rate": 3e-3, "seed": 0}
_ALL = (
    Method("sae-l1", 1, sae_l1, {**CODER, "penalty": 0.4}, JAX),
    Method("sae-topk", 1, sae_topk, {**CODER, "k": 2}, JAX),
    Method("sae-jumprelu", 1, sae_jumprelu, {**CODER, "penalty": 0.05}, JAX),
    Method("transcoder", 1, transcoder, {**CODER, "penalty": 0.4}, JAX),
    Method("ica", 1, ica, {"seed": 0}),
    Method("nmf", 1, nmf, {"width": 1.0, "iterations": 200, "seed": 0}),
    Method("pca", 1, pca),
    Method("dictionary-learning", 1, dictionary_learning, {"width": 1.0, "alpha": 0.1, "passes": 4, "seed": 0}),
    Method("random-atoms", 1, random_atoms, {"width": 1.0, "seed": 0}),
    Method("data-atoms", 1, data_atoms, {"width": 1.0, "seed": 0}),
    Method("supervised", 1, supervised),
    Method("true-features", 1, true_features),
)
FEATURE_METHODS: Mapping[str, Method] = MappingProxyType({one.name: replace(one, track=FEATURES.name) for one in _ALL})
"""All methods; the last four are two null methods and two references."""
