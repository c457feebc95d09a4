"""The hint of a rotated model: an orthogonal matrix, and the weights of the plain network; all products are exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, grid_of
from tracr_check.piecewise import bits_of
from tracr_check.variables import Array
from tracr_check.verdict import need

__all__ = ["exact_product", "orthogonal", "plain_weights"]

READERS, WRITERS = ("W_Q", "W_K", "W_V", "W_in", "W_U"), ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out")
LARGEST, NUMBERS, PRODUCTS = 2_000, 1e7, 1e9  # dimensions, weights, and products of both that are not 0


def orthogonal(given: Any, width: int) -> Array:
    """The matrix of a hint, if it is exactly orthogonal."""
    need(isinstance(given, np.ndarray) and given.shape == (width, width) and width <= LARGEST, "no rotation")
    rotation = np.asarray(given, np.float64)
    need(np.isfinite(rotation).all() and np.abs(rotation).max() <= 1, "the rotation is not orthogonal")
    need(rotation.size * (rotation != 0).sum(0).max(initial=0) <= PRODUCTS, "too many dimensions to turn")
    need(np.array_equal(exact_product(rotation, rotation.T), np.eye(width)), "the rotation is not orthogonal")
    return rotation


def exact_product(left: Array, right: Array) -> Array:
    """A product of two matrices that is exact in float64: every sum has multiples of a grid, and few enough bits."""
    here, there = left != 0, right != 0
    size, least = np.abs(left) @ np.abs(right), np.full((len(left), right.shape[1]), INF)
    few = bits_of(left).max(initial=0) + bits_of(right).max(initial=0) <= 53
    grids, others = grid_of(left), grid_of(right)
    for place in np.flatnonzero(here.any(0) & there.any(1)):
        both = np.ix_(here[:, place], there[place])
        least[both] = np.minimum(least[both], np.outer(grids[here[:, place], place], others[place, there[place]]))
    need(few and (size * (1 + 2.0**-30) <= 2.0**52 * least).all(), "a product with the rotation is not exact")
    return np.asarray(left @ right)


def plain_weights(weights: Mapping[str, NDArray[Any]], rotation: Array, a: Arithmetic) -> dict[str, Array]:
    """The weights of the plain network; those of the rotated one are cast to the arithmetic first."""
    numbers, mixed = sum(one.size for one in weights.values()), (rotation != 0).sum(0).max(initial=0)
    need(numbers <= NUMBERS and numbers * mixed <= PRODUCTS, "too many weights to turn")
    found = {}
    for name, given in weights.items():
        need(given.dtype.kind == "f" and given.ndim <= 3, f"{name} is malformed")
        with np.errstate(over="ignore"):
            array, kind = a.cast(given), name.rpartition(".")[2]
        need(np.isfinite(array).all(), f"{name} has numbers that are not finite in {a.name}")
        if kind in READERS:
            array = np.swapaxes(_turned(np.swapaxes(array, -1, -2), rotation, name), -1, -2)
        elif kind in WRITERS:
            array = _turned(array, rotation, name)
        found[name] = np.ascontiguousarray(array)
    return found


def _turned(array: Array, rotation: Array, name: str) -> Array:
    """An array times the rotation's inverse; its last axis are the dimensions of the rotated stream."""
    need(array.shape[-1] == len(rotation), f"{name} has another size than the rotation")
    return exact_product(array.reshape(-1, len(rotation)), rotation.T).reshape(array.shape)
