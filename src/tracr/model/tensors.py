"""Numpy arrays, torch tensors and JAX arrays alike: the result is of the kind that was given.

A framework is found by the type of what is given, so none is imported unless it is in use already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_tensor", "like", "namespace_of", "replaced"]

Tensor = Any


def _framework(tensor: Tensor) -> str:
    """The package that a tensor's type is from; JAX's arrays and what it traces are from `jax` or `jaxlib`."""
    roots = {kind.__module__.partition(".")[0] for kind in type(tensor).__mro__}
    return "torch" if "torch" in roots else "jax" if roots & {"jax", "jaxlib"} else "numpy"


def as_tensor(tensor: Tensor) -> Tensor:
    """A tensor of a framework as it is; anything else as a numpy array of floats."""
    if _framework(tensor) != "numpy":
        return tensor
    array = np.asarray(tensor)
    return array if np.issubdtype(array.dtype, np.floating) else array.astype(np.float64)


def namespace_of(tensor: Tensor) -> Any:
    """The functions for a tensor: numpy, torch or `jax.numpy`."""
    framework = _framework(tensor)
    return np if framework == "numpy" else sys.modules["torch" if framework == "torch" else "jax.numpy"]


def like(tensor: Tensor, array: Any) -> Tensor:
    """An array as a tensor of the same kind and type as another, on its device."""
    if _framework(tensor) == "torch":
        return namespace_of(tensor).as_tensor(array, dtype=tensor.dtype, device=tensor.device)
    return namespace_of(tensor).asarray(array, dtype=tensor.dtype)


def replaced(tensor: Tensor, places: NDArray[np.intp], values: Any) -> Tensor:
    """The tensor with its last axis set to `values` at some places; the one given is left as it is."""
    if _framework(tensor) == "jax":
        return tensor.at[..., places].set(values)
    changed = tensor.clone() if _framework(tensor) == "torch" else np.array(tensor)
    changed[..., places] = values
    return changed
