"""Functions of numpy arrays, torch tensors and JAX arrays; the result has the framework of the argument.

The framework is found from the argument's type; therefore no framework is imported that is not in use already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError, TracrError

__all__ = ["as_numpy", "as_tensor", "like", "namespace_of", "read_array", "replaced", "stream_of"]

Tensor = Any


def _framework(tensor: Tensor) -> str:
    """The package of a tensor's type; JAX's arrays and tracers are from `jax` or `jaxlib`."""
    roots = {kind.__module__.partition(".")[0] for kind in type(tensor).__mro__}
    return "torch" if "torch" in roots else "jax" if roots & {"jax", "jaxlib"} else "numpy"


def as_tensor(tensor: Tensor) -> Tensor:
    """A tensor of a framework, unchanged; anything else as a numpy array of floats."""
    if _framework(tensor) != "numpy":
        return tensor
    array = np.asarray(tensor)
    return array if np.issubdtype(array.dtype, np.floating) else array.astype(np.float64)


def stream_of(tensor: Tensor, width: int) -> Tensor:
    """A residual stream [..., width] that a user gave, or an error."""
    try:
        stream = as_tensor(tensor)
        shape = tuple(stream.shape)
    except Exception:  # not numbers, or rows of different lengths
        shape = ()
    if shape[-1:] != (width,):
        raise InputError(
            f"a residual stream has {width} numbers in its last axis, not the shape {shape}",
            hint='pass an activation such as model.run(tokens)["blocks.0.hook_resid_post"]',
        )
    return stream


def namespace_of(tensor: Tensor) -> Any:
    """The module with the functions for a tensor: numpy, torch or `jax.numpy`."""
    framework = _framework(tensor)
    return np if framework == "numpy" else sys.modules["torch" if framework == "torch" else "jax.numpy"]


def like(tensor: Tensor, array: Any) -> Tensor:
    """An array as a tensor of the same kind and type as another, on its device."""
    if _framework(tensor) == "torch":
        return namespace_of(tensor).as_tensor(array, dtype=tensor.dtype, device=tensor.device)
    return namespace_of(tensor).asarray(array, dtype=tensor.dtype)


def replaced(tensor: Tensor, places: NDArray[np.intp], values: Any) -> Tensor:
    """A copy of the tensor with `values` at some places of its last axis."""
    if _framework(tensor) == "jax":
        return tensor.at[..., places].set(values)
    changed = tensor.clone() if _framework(tensor) == "torch" else np.array(tensor)
    changed[..., places] = values
    return changed


def as_numpy(tensor: Any) -> NDArray[Any]:
    """An array of any framework, on any device, as a numpy array."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":  # numpy has no such type
            tensor = tensor.float()
    return np.asarray(tensor)


def read_array(what: str, tensor: Any, *, error: type[TracrError]) -> NDArray[Any]:
    """An array given by a user, as a numpy array, or an error."""
    try:
        return as_numpy(tensor)
    except Exception as problem:  # rows of different lengths, a tensor without memory
        hint = "pass an array or a tensor, or rows of one length"
        raise error(f"{what} cannot be read as an array: {type(problem).__name__}", hint=hint) from problem
