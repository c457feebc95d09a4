"""Linear and bilinear functions of labelled vectors, under the original Tracr's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.bases import BasisDirection, VectorInBasis, VectorSpaceWithBasis, join_vector_spaces
from tracr.errors import ExpressionError

__all__ = ["Linear", "ScalarBilinear", "project"]

Array = NDArray[Any]


def _coordinates(vector: VectorInBasis, space: VectorSpaceWithBasis) -> Array:
    """The vector's coordinates in the order of the space; both must have the same directions."""
    if vector not in space:
        raise ExpressionError("the vector is not in the space of the function", hint="write vector.project(space)")
    return vector.project(space).magnitudes


def _check_shape(matrix: Array, rows: VectorSpaceWithBasis, columns: VectorSpaceWithBasis) -> None:
    if matrix.shape != (rows.num_dims, columns.num_dims):
        raise ExpressionError(
            f"a matrix from {rows.num_dims} to {columns.num_dims} dimensions cannot have the shape {matrix.shape}",
            hint="give one row per input dimension and one column per output dimension",
        )


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear map; the rows and columns of `matrix` [input, output] are in the order of the bases."""

    input_space: VectorSpaceWithBasis
    output_space: VectorSpaceWithBasis
    matrix: Array

    def __post_init__(self) -> None:
        _check_shape(self.matrix, self.input_space, self.output_space)

    def __call__(self, x: VectorInBasis) -> VectorInBasis:
        """The image of a vector."""
        return self.output_space.make_vector(_coordinates(x, self.input_space) @ self.matrix)

    @staticmethod
    def from_action(
        input_space: VectorSpaceWithBasis,
        output_space: VectorSpaceWithBasis,
        action: Callable[[BasisDirection], VectorInBasis],
    ) -> Linear:
        """The map that sends each direction to the vector `action(direction)`."""
        rows = [_coordinates(action(direction), output_space) for direction in input_space.basis]
        matrix = np.array(rows).reshape(input_space.num_dims, output_space.num_dims)
        return Linear(input_space, output_space, matrix)

    @staticmethod
    def combine_in_parallel(fns: Sequence[Linear]) -> Linear:
        """The sum of maps, each applied to its own directions."""
        inputs = join_vector_spaces(*(fn.input_space for fn in fns))
        outputs = join_vector_spaces(*(fn.output_space for fn in fns))
        parts = (
            project(inputs, fn.input_space).matrix @ fn.matrix @ project(fn.output_space, outputs).matrix for fn in fns
        )
        return Linear(inputs, outputs, sum(parts, np.zeros((inputs.num_dims, outputs.num_dims))))


def project(from_space: VectorSpaceWithBasis, to_space: VectorSpaceWithBasis) -> Linear:
    """The map that keeps the directions both spaces have.

    >>> ab, bc = (VectorSpaceWithBasis.from_names(names) for names in ("ab", "bc"))
    >>> project(ab, bc).matrix.tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    matrix = np.zeros((from_space.num_dims, to_space.num_dims))
    for place, direction in enumerate(from_space.basis):
        if direction in to_space:
            matrix[place, to_space.index_by_direction[direction]] = 1.0
    return Linear(from_space, to_space, matrix)


@dataclass(frozen=True, eq=False)
class ScalarBilinear:
    """A bilinear function to numbers; the rows and columns of `matrix` [left, right] are in the order of the bases."""

    left_space: VectorSpaceWithBasis
    right_space: VectorSpaceWithBasis
    matrix: Array

    def __post_init__(self) -> None:
        _check_shape(self.matrix, self.left_space, self.right_space)

    def __call__(self, x: VectorInBasis, y: VectorInBasis) -> float:
        """The value for two vectors."""
        return float(_coordinates(x, self.left_space) @ self.matrix @ _coordinates(y, self.right_space))

    @staticmethod
    def from_action(
        left_space: VectorSpaceWithBasis,
        right_space: VectorSpaceWithBasis,
        action: Callable[[BasisDirection, BasisDirection], float],
    ) -> ScalarBilinear:
        """The function with these values for pairs of directions."""
        rows = [[action(left, right) for right in right_space.basis] for left in left_space.basis]
        matrix = np.array(rows, dtype=np.float64).reshape(left_space.num_dims, right_space.num_dims)
        return ScalarBilinear(left_space, right_space, matrix)
