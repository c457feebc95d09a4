"""Variants of compiled models: which rules prove them, and which variants there are no rules for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.normed import ASSUMED, Normed
from tracr_check.program import Program
from tracr_check.proving import Weights, follow, logits_of
from tracr_check.rotation import orthogonal, plain_weights
from tracr_check.turned import Turned
from tracr_check.variables import Array
from tracr_check.verdict import need, reject

__all__ = ["follow_normed", "prove_variant"]

WRITE = "variant.write"


def prove_variant(
    program: Program,
    model: Any,
    tables: Mapping[str, NDArray[Any]],
    weights: Mapping[str, NDArray[Any]],
    hints: Any,
    a: Arithmetic,
    padded: bool,
) -> tuple[str, ...]:
    """Prove the theorem of a variant; the result are its assumptions beyond those of the arithmetic."""
    variant = model["variant"]
    need(isinstance(variant, dict) and isinstance(variant.get("steps"), list), "malformed variant")
    steps = ", ".join(map(str, variant["steps"]))[:100]
    if variant.get("noise") != 0:
        reject(f"there are no rules for noise: {steps}")
    slices = model["outputs"]
    given = Weights(weights, program, logits_of(slices), a)
    if variant.get("epsilon") is not None:
        need(variant.get("width") is None, "there are no rules for layer norms of a part of the stream")
        follow_normed(program, slices, given, variant["epsilon"], np.zeros(given.width), hints, a, padded)
        return ASSUMED
    rotation = orthogonal(tables.get(WRITE), given.width)
    wide = replace(a, cast=_same)  # the plain weights need not be numbers of the format
    plain = Weights(plain_weights(weights, rotation, a), program, logits_of(slices), wide)
    follow(program, slices, plain, hints, wide, padded, Turned(given, plain, rotation, a))
    return ()


def follow_normed(
    program: Program,
    slices: list[Any],
    given: Weights,
    epsilon: float,
    last_bias: Array,
    hints: Any,
    a: Arithmetic,
    padded: bool,
) -> None:
    """Prove the theorem of a network with layer norms."""
    follower = Normed(given, float(epsilon), last_bias, a)
    follow(program, slices, given.without(follower.balance), hints, a, padded, follower)


def _same(array: NDArray[Any]) -> Array:
    return array.astype(np.float64)
