"""The spaces of Craft: each variable of the program owns labelled directions of the residual stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.craft.numerics import EXACT, Noise
from tracr.rasp.annotations import Encoding
from tracr.values import Value, is_number, value_text

__all__ = ["NUMBER", "Array", "Bit", "Feature", "Number", "Variable", "bits_of"]

Array = NDArray[np.float64]


class Number:
    """Marks the direction whose coordinate is the value."""

    def __repr__(self) -> str:
        return "number"


NUMBER = Number()


@dataclass(frozen=True)
class Bit:
    """Marks a direction that holds one bit of the value's number: +1 for 0, -1 for 1."""

    place: int


@dataclass(frozen=True)
class Feature:
    """Marks a direction that holds another function of the value; its label is the variable's label plus `name`."""

    name: str


def bits_of(numbers: NDArray[np.integer], width: int) -> Array:
    """The bits of numbers, the lowest first, as +1 for 0 and -1 for 1.

    >>> bits_of(np.array([0, 1, 6]), 3).tolist()
    [[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [1.0, -1.0, -1.0]]
    """
    return np.asarray(1.0 - 2.0 * ((numbers[:, None] >> np.arange(width)) & 1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Variable:
    """A named subspace: one direction per value (categorical), or one for the number and, if possible, one for `None`.

    A categorical variable with very many values has a `codebook` [values, directions] of bits instead (`bits_of`). It
    is always exact: bits are written and copied as +1 and -1, and sums of them are small integers. A variable written
    by the embedding may have a codebook of other `features` of the value.

    `at_bos` is the code at the BOS position, the same for every input; `low` and `high` bound the stored numbers.
    """

    label: str
    encoding: Encoding
    values: tuple[Value | Number, ...]
    noise: Noise = EXACT
    at_bos: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 1.0
    node: int | None = field(default=None)
    scratch: bool = False
    codebook: Array | None = None
    features: tuple[Number | Feature, ...] = ()

    @property
    def size(self) -> int:
        """The number of directions."""
        return len(self.values) if self.codebook is None else int(self.codebook.shape[1])

    @property
    def compact(self) -> bool:
        """Whether values are stored as bits or as other features."""
        return self.codebook is not None

    @cached_property
    def index(self) -> dict[Value | Number, int]:
        """From value to direction, or to the row of the codebook."""
        return {value: place for place, value in enumerate(self.values)}

    @property
    def maybe_none(self) -> bool:
        """Whether `None` has a direction."""
        return None in self.index

    @property
    def numerical(self) -> bool:
        """Whether the coordinate along one direction is the value."""
        return self.encoding is Encoding.NUMERICAL

    def with_noise(self, noise: Noise) -> Variable:
        """The variable with this bound on the error of its code."""
        return self if noise == self.noise else replace(self, noise=noise)

    def direction_label(self, place: int) -> str:
        """The label of one direction: `name` for a number, `name:bit0` for a bit, `name:value` otherwise."""
        value = self.held(place)
        if isinstance(value, Feature):
            return self.label + value.name
        if isinstance(value, Bit):
            return f"{self.label}:bit{value.place}"
        return self.label if isinstance(value, Number) else f"{self.label}:{value_text(value)}"

    def held(self, place: int) -> Value | Number | Bit | Feature:
        """The value, or the mark (number, bit, feature), of one direction."""
        if self.features:
            return self.features[place]
        return self.values[place] if self.codebook is None else Bit(place)

    def code(self, value: Value) -> Array:
        """The coordinates of `value`."""
        coordinates: Array = self.codes([value])[0]
        return coordinates

    def codes(self, values: Sequence[Value]) -> Array:
        """The coordinates of each value, a row each."""
        if self.codebook is not None:
            return np.asarray(self.codebook[[self.index[value] for value in values]], dtype=np.float64)
        coordinates = np.zeros((len(values), self.size))
        for row, value in enumerate(values):
            if self.numerical and is_number(value):
                coordinates[row, self.index[NUMBER]] = float(value)
            else:
                coordinates[row, self.index[value]] = 1.0
        return coordinates

    def bos_code(self) -> Array:
        """The coordinates at the BOS position."""
        return np.array(self.at_bos) if self.at_bos else np.zeros(self.size)
