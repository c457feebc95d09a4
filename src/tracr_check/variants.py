"""Variants of compiled models: which rules prove them, and which variants there are no rules for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import ARITHMETICS
from tracr_check.normed import ASSUMED, Normed
from tracr_check.proving import Claim, prove
from tracr_check.rotation import orthogonal, plain_weights
from tracr_check.turned import Turned
from tracr_check.verdict import need

__all__ = ["prove_variant"]

WRITE = "variant.write"


def prove_variant(
    claim: Claim, variant: Any, tables: Mapping[str, NDArray[Any]], weights: Mapping[str, NDArray[Any]]
) -> tuple[str, ...]:
    """Prove the claim of a variant; the result are its assumptions beyond those of the arithmetic."""
    need(isinstance(variant, dict) and isinstance(variant.get("steps"), list), "malformed variant")
    need(set(variant) <= {"steps", "noise", "epsilon", "width"}, "there are no rules for this variant")
    steps = ", ".join(map(str, variant["steps"]))[:100]
    need(variant.get("noise") == 0, f"there are no rules for noise: {steps}")
    given, a = claim.weights(weights), claim.arithmetic
    if variant.get("epsilon") is not None:
        need(variant.get("width") is None, "there are no rules for layer norms of a part of the stream")
        need("rotated" not in steps, "there are no rules for layer norms of a rotated stream")
        follower = Normed(given, float(variant["epsilon"]), np.zeros(given.width), a)
        prove(claim, given.without(follower.balance), follower)
        return ASSUMED
    rotation = orthogonal(tables.get(WRITE), given.width)
    wide = replace(a, cast=ARITHMETICS["float64"].cast)  # the plain weights need not be numbers of the format
    claim = replace(claim, arithmetic=wide)
    plain = claim.weights(plain_weights(weights, rotation, a))
    prove(claim, plain, Turned(given, plain, rotation, a))
    return ()
