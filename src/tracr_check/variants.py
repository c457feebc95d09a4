"""Variants of compiled models: which rules prove them, and which variants there are no rules for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.normed import ASSUMED, Normed
from tracr_check.program import Program
from tracr_check.proving import Weights, follow, logits_of
from tracr_check.rotation import orthogonal, plain_weights
from tracr_check.turned import Turned
from tracr_check.verdict import need, reject

__all__ = ["prove_variant"]

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
    need(set(variant) <= {"steps", "noise", "epsilon", "width"}, "there are no rules for this variant")
    steps = ", ".join(map(str, variant["steps"]))[:100]
    if variant.get("noise") != 0:
        reject(f"there are no rules for noise: {steps}")
    slices = model["outputs"]
    given = Weights(weights, program, logits_of(slices), a)
    if variant.get("epsilon") is not None:
        need(variant.get("width") is None, "there are no rules for layer norms of a part of the stream")
        need("rotated" not in steps, "there are no rules for layer norms of a rotated stream")
        follower = Normed(given, float(variant["epsilon"]), np.zeros(given.width), a)
        follow(program, slices, given.without(follower.balance), hints, a, padded, follower)
        return ASSUMED
    rotation = orthogonal(tables.get(WRITE), given.width)
    wide = replace(a, cast=ARITHMETICS["float64"].cast)  # the plain weights need not be numbers of the format
    plain = Weights(plain_weights(weights, rotation, a), program, logits_of(slices), wide)
    follow(program, slices, plain, hints, wide, padded, Turned(given, plain, rotation, a))
    return ()
