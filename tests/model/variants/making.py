"""The variants that the tests make of a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import tracr

Make = Callable[[tracr.CompiledModel], tracr.VariantModel]
VARIANTS: dict[str, Make] = {
    "rotated": lambda model: model.rotated(1),
    "layer_norm": lambda model: model.with_layer_norm(),
    "rotated, layer_norm": lambda model: model.rotated(2).with_layer_norm(),
    "layer_norm, rotated": lambda model: model.with_layer_norm().rotated(3),
    "noise": lambda model: model.with_noise(),
    "all": lambda model: model.rotated(4).with_layer_norm().with_noise(1e-7, seed=1),
}
VARIANTS = {name: cache(make) for name, make in VARIANTS.items()}
EXACT = [name for name in VARIANTS if name not in ("noise", "all")]
