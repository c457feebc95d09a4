"""Gives a model other weights, from a state dict that was edited or trained further; the labels stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.errors import FormatError
from tracr.ir.parameters import Parameters
from tracr.model.variants.variant_model import with_other_weights
from tracr.runtime.tensors import read_array
from tracr.runtime.uniform import Sizes, layer_shapes, resized
from tracr.values import short_repr

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["with_weights"]

Array = NDArray[Any]
BUFFERS = (".mask", ".IGNORE")  # entries of TransformerLens 2 and 3 that are not weights


def with_weights(model: DesignedModel, weights: Mapping[str, Any], attn_scale: float = 1.0) -> DesignedModel:
    """The model with other weights; `own_weights` stays only if they are its own, in float64 or rounded to float32."""
    if not isinstance(weights, Mapping) or not all(isinstance(name, str) for name in weights):
        raise FormatError(
            f"weights must map names to arrays, not {short_repr(weights)}",
            hint="pass a state dict with the names of model.parameters.named()",
        )
    attn_scale = arguments.number("attn_scale", attn_scale, above=0)
    own = model.parameters
    given = Parameters.of(_read(weights, own))
    sizes = _sizes(given, own)
    if attn_scale != 1:
        layers = [replace(layer, W_Q=layer.W_Q / attn_scale, b_Q=layer.b_Q / attn_scale) for layer in given.layers]
        given = replace(given, layers=tuple(layers))
    trimmed = _resized(given, list(map(Sizes.of, own.layers)))
    if _equal(_resized(trimmed, sizes), given):  # additional heads and neurons are zero
        given = trimmed
    if _equal(given, own) or _equal(given, model.cast(np.float32)):
        return model
    return with_other_weights(model, given)


def _read(weights: Mapping[str, Any], own: Parameters) -> dict[str, Array]:
    """The weights in float64; refused unless complete, finite, and for the same tokens, positions and dimensions."""
    given = {name: _as_float64(name, tensor) for name, tensor in weights.items() if not name.endswith(BUFFERS)}
    if not given.get("unembed.b_U", np.ones(1)).any():
        del given["unembed.b_U"]
    wanted = dict(own.named())
    strange = sorted(set(given) ^ set(wanted))
    if strange:
        raise FormatError(
            f"the weights lack or should not have {', '.join(strange[:5])}",
            hint="pass a state dict with the names of model.parameters.named()",
        )
    for name, array in given.items():
        if not np.isfinite(array).all():
            raise FormatError(
                f"{name} has weights that are not finite", hint="the training diverged: use an earlier state"
            )
        if not name.startswith("blocks") and array.shape != wanted[name].shape:
            raise _other_shape(name, array, wanted[name].shape)
    return given


def _as_float64(name: str, tensor: Any) -> Array:
    try:
        return read_array(name, tensor, error=FormatError).astype(np.float64)
    except (TypeError, ValueError):
        raise FormatError(f"{name} is not an array of numbers", hint="pass arrays or tensors of floats") from None


def _sizes(given: Parameters, own: Parameters) -> list[Sizes]:
    """The sizes of the layers; a layer with fewer heads or neurons than the model's own is refused."""
    found = []
    for number, (layer, wanted) in enumerate(zip(given.layers, own.layers, strict=True)):
        sizes = Sizes.of(wanted)
        if layer.b_Q.ndim == 2 and layer.b_in.ndim == 1:
            sizes = Sizes(*np.maximum(astuple(Sizes.of(layer)), astuple(sizes)).tolist())
        for name, shape in layer_shapes(sizes, len(wanted.b_O)).items():
            if getattr(layer, name).shape != shape:
                raise _other_shape(f"{name} of block {number}", getattr(layer, name), shape)
        found.append(sizes)
    return found


def _resized(parameters: Parameters, sizes: list[Sizes]) -> Parameters:
    return replace(parameters, layers=tuple(map(resized, parameters.layers, sizes)))


def _equal(one: Parameters, other: Parameters) -> bool:
    pairs = zip(one.named(), other.named(), strict=True)
    return all(np.array_equal(array, expected) for (_, array), (_, expected) in pairs)


def _other_shape(name: str, array: Array, shape: tuple[int, ...]) -> FormatError:
    return FormatError(
        f"{name} has the shape {array.shape}, not {shape}", hint="these are the weights of another model"
    )
