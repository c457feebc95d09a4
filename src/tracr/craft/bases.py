"""Labelled spaces and their vectors, under the original Tracr's names; the compiler itself uses `variables.py`.

A space keeps its directions in the given order. Therefore the labels of a residual stream give the space of its
dimensions. Spaces with the same directions in different orders are equal, and vectors are matched by direction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracr.errors import ExpressionError
from tracr.values import Value, value_text

__all__ = ["BasisDirection", "VectorInBasis", "VectorSpaceWithBasis", "direct_sum", "join_vector_spaces"]

Array = NDArray[Any]


@dataclass(frozen=True)
class BasisDirection:
    """One direction. `name` holds a number; `name:value` is 1 if the variable has that value, else 0.

    >>> sorted([BasisDirection("x", 2), BasisDirection("x", 1), BasisDirection("one")])
    [BasisDirection(name='one', value=None), BasisDirection(name='x', value=1), BasisDirection(name='x', value=2)]
    """

    name: str | int
    value: Value = None

    def __str__(self) -> str:
        return str(self.name) if self.value is None else f"{self.name}:{value_text(self.value)}"

    def __lt__(self, other: BasisDirection) -> bool:
        """Compare by name, then by value; by the text if these cannot be compared."""
        try:
            return bool((self.name, self.value) < (other.name, other.value))
        except TypeError:
            return str(self) < str(other)


def _in_order(directions: Iterable[BasisDirection], given: object) -> list[BasisDirection]:
    """The directions in the given order; those of a set, which has no order, are sorted."""
    return sorted(directions) if isinstance(given, set | frozenset) else list(directions)


@dataclass(frozen=True, eq=False)
class VectorInBasis:
    """A vector, or an array of them, with its coordinates on the last axis."""

    basis_directions: Sequence[BasisDirection]
    magnitudes: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis_directions", list(self.basis_directions))
        object.__setattr__(self, "magnitudes", np.asarray(self.magnitudes))
        if self.magnitudes.shape[-1:] != (len(self.basis_directions),):
            raise ExpressionError(
                f"a vector in {len(self.basis_directions)} directions cannot have coordinates of the shape "
                f"{self.magnitudes.shape}",
                hint="give one coordinate per direction on the last axis",
            )

    def _aligned(self, other: VectorInBasis) -> Array:
        """The coordinates of `other`, in the order of this vector's directions."""
        if set(self.basis_directions) != set(other.basis_directions):
            raise ExpressionError(
                f"vectors in different directions cannot be combined: {_names(self)} and {_names(other)}",
                hint="project both to one space first",
            )
        return other.project(self.basis_directions).magnitudes

    def __add__(self, other: VectorInBasis) -> VectorInBasis:
        return VectorInBasis(self.basis_directions, self.magnitudes + self._aligned(other))

    def __sub__(self, other: VectorInBasis) -> VectorInBasis:
        return VectorInBasis(self.basis_directions, self.magnitudes - self._aligned(other))

    def __mul__(self, scalar: float) -> VectorInBasis:
        return VectorInBasis(self.basis_directions, self.magnitudes * scalar)

    __rmul__ = __mul__

    def __truediv__(self, scalar: float) -> VectorInBasis:
        return VectorInBasis(self.basis_directions, self.magnitudes / scalar)

    def __neg__(self) -> VectorInBasis:
        return self * -1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VectorInBasis) or set(self.basis_directions) != set(other.basis_directions):
            return False
        return np.array_equal(self.magnitudes, self._aligned(other))

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def sum(cls, vectors: Sequence[VectorInBasis]) -> VectorInBasis:
        """The sum of vectors in one space."""
        first, *others = vectors
        return cls(first.basis_directions, sum((first._aligned(other) for other in others), first.magnitudes))

    @classmethod
    def stack(cls, vectors: Sequence[VectorInBasis], axis: int = 0) -> VectorInBasis:
        """An array of vectors in one space."""
        first = vectors[0]
        return cls(first.basis_directions, np.stack([first._aligned(vector) for vector in vectors], axis=axis))

    def project(self, basis: VectorSpaceWithBasis | Sequence[BasisDirection]) -> VectorInBasis:
        """The coordinates in other directions: 0 in the directions that this vector lacks."""
        wanted = list(basis.basis if isinstance(basis, VectorSpaceWithBasis) else basis)
        index = {direction: place for place, direction in enumerate(self.basis_directions)}
        coordinates = np.zeros((*self.magnitudes.shape[:-1], len(wanted)), dtype=self.magnitudes.dtype)
        shared = [(place, index[direction]) for place, direction in enumerate(wanted) if direction in index]
        if shared:
            here, there = map(list, zip(*shared, strict=True))
            coordinates[..., here] = self.magnitudes[..., there]
        return VectorInBasis(wanted, coordinates)

    def add_directions(self, vector: VectorInBasis) -> VectorInBasis:
        """The sum of this vector and a vector in some of its directions."""
        return self + vector.project(self.basis_directions)


def _names(vector: VectorInBasis) -> str:
    shown = ", ".join(map(str, vector.basis_directions[:6]))
    return f"[{shown}, ...]" if len(vector.basis_directions) > 6 else f"[{shown}]"


@dataclass(frozen=True, eq=False)
class VectorSpaceWithBasis:
    """A space spanned by labelled directions.

    >>> space = VectorSpaceWithBasis.from_values("x", {"b", "a"})
    >>> [str(direction) for direction in space.basis], space.num_dims
    (['x:a', 'x:b'], 2)
    """

    basis: Sequence[BasisDirection]

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", _in_order(self.basis, self.basis))

    @staticmethod
    def from_names(names: Iterable[str | int]) -> VectorSpaceWithBasis:
        """One direction per name."""
        return VectorSpaceWithBasis(_in_order(map(BasisDirection, names), names))

    @staticmethod
    def from_values(name: str | int, values: Iterable[Value]) -> VectorSpaceWithBasis:
        """One direction per value of a variable."""
        return VectorSpaceWithBasis(_in_order((BasisDirection(name, value) for value in values), values))

    @property
    def num_dims(self) -> int:
        """The number of directions."""
        return len(self.basis)

    @cached_property
    def index_by_direction(self) -> dict[BasisDirection, int]:
        """The index of each direction."""
        return {direction: place for place, direction in enumerate(self.basis)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VectorSpaceWithBasis) and set(self.basis) == set(other.basis)

    def __hash__(self) -> int:
        return hash(frozenset(self.basis))

    def __contains__(self, item: VectorInBasis | BasisDirection) -> bool:
        if isinstance(item, BasisDirection):
            return item in self.index_by_direction
        return set(item.basis_directions) == set(self.basis)

    def issubspace(self, other: VectorSpaceWithBasis) -> bool:
        """Whether the other space has all directions of this one."""
        return set(self.basis) <= set(other.basis)

    def make_vector(self, magnitudes: ArrayLike) -> VectorInBasis:
        """The vector with these coordinates."""
        return VectorInBasis(self.basis, np.asarray(magnitudes))

    def basis_vectors(self) -> list[VectorInBasis]:
        """The unit vectors."""
        return [self.make_vector(row) for row in np.eye(self.num_dims)]

    def vector_from_basis_direction(self, basis_direction: BasisDirection) -> VectorInBasis:
        """The unit vector of a direction."""
        return self.make_vector(np.eye(self.num_dims)[self.index_by_direction[basis_direction]])

    def null_vector(self) -> VectorInBasis:
        """The origin."""
        return self.make_vector(np.zeros(self.num_dims))


def direct_sum(*vs: VectorSpaceWithBasis) -> VectorSpaceWithBasis:
    """The space of all directions, one space after the other; the spaces may not share a direction."""
    every = list(itertools.chain.from_iterable(space.basis for space in vs))
    if len(set(every)) != len(every):
        double = next(direction for direction in every if every.count(direction) > 1)
        raise ExpressionError(f"two spaces have the direction {double}", hint="use join_vector_spaces")
    return VectorSpaceWithBasis(every)


def join_vector_spaces(*vs: VectorSpaceWithBasis) -> VectorSpaceWithBasis:
    """The space of all directions, sorted; the spaces may share directions."""
    return VectorSpaceWithBasis(sorted(set(itertools.chain.from_iterable(space.basis for space in vs))))
