"""The variant of a saved model: how it differs from the compiled model, as JSON, and its basis as two arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import FormatError
from tracr.model.variants.basis import Directions
from tracr.model.variants.layer_norm import LayerNorm
from tracr.model.variants.variant import Variant
from tracr.nearness import nearly_equal
from tracr.saving.json_reader import Reader

__all__ = ["basis_tensors", "read_variant", "variant_json"]

WRITE, READ = "variant.write", "variant.read"


def variant_json(variant: Variant) -> dict[str, Any]:
    """The steps and the noise of a variant, and the layer norms' epsilon and width, if it has them."""
    norm = variant.layer_norm
    content = {"steps": list(variant.steps), "noise": variant.noise, "epsilon": norm.epsilon if norm else None}
    return {**content, "width": norm.width} if norm and norm.width is not None else content


def basis_tensors(variant: Variant) -> dict[str, NDArray[Any]]:
    """The basis, by the names that `read_variant` uses."""
    return {WRITE: np.ascontiguousarray(variant.basis.write), READ: np.ascontiguousarray(variant.basis.read)}


def read_variant(reader: Reader, tensors: dict[str, NDArray[Any]]) -> Variant:
    """Read the variant written by `variant_json` and `basis_tensors`; removes its arrays from `tensors`."""
    given = reader.object(("steps", "noise", "epsilon"), optional=("width",))
    steps = tuple(step.text() for step in given["steps"].items())
    noise, epsilon = float(given["noise"].number()), given["epsilon"]
    width = given["width"].integer() if "width" in given else None
    norm = None if epsilon.data is None else LayerNorm(float(epsilon.number()), width)
    if not steps:
        reader.fail("has no steps: without one it is the compiled model")
    if noise < 0 or (norm and norm.epsilon <= 0) or (width is not None and width < 1):
        reader.fail("has noise, an epsilon or a width below 0")
    return Variant(steps, _read_basis(tensors), noise, norm)


def _read_basis(tensors: dict[str, NDArray[Any]]) -> Directions:
    write, read = (tensors.pop(name, np.zeros(0)) for name in (WRITE, READ))
    for name, array in ((WRITE, write), (READ, read)):
        if array.dtype != np.float64 or array.ndim != 2 or not np.isfinite(array).all():
            raise FormatError(f"there is no matrix {name} of finite float64")
    if read.shape != write.shape[::-1] or not nearly_equal(np.eye(len(write)), write @ read).all():
        raise FormatError(f"{READ} does not read what {WRITE} writes")
    return Directions(write, read)
