"""The spaces of Craft: each variable of the program owns labelled directions of the residual stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracr.craft.numerics import EXACT, Noise
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value, is_number, value_text

__all__ = ["NUMBER", "Array", "Number", "Variable"]

Array = NDArray[np.float64]


class Number:
    """Marks the direction whose size is the value."""

    def __repr__(self) -> str:
        return "number"


NUMBER = Number()


@dataclass(frozen=True, eq=False)
class Variable:
    """A named subspace: one direction per value (categorical), or one for the number and one for `None` if it may be.

    `at_bos` is what the BOS position holds there, always the same; `low` and `high` bound the numbers stored.
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

    @property
    def size(self) -> int:
        """The number of directions."""
        return len(self.values)

    @cached_property
    def index(self) -> dict[Value | Number, int]:
        """From value to direction."""
        return {value: place for place, value in enumerate(self.values)}

    @property
    def maybe_none(self) -> bool:
        """Whether a direction stands for `None`."""
        return None in self.index

    @property
    def numerical(self) -> bool:
        """Whether the size of one direction is the value."""
        return self.encoding is Encoding.NUMERICAL

    def direction_label(self, place: int) -> str:
        """The label of one direction: `name` for a number, `name:value` otherwise."""
        value = self.values[place]
        return self.label if value is NUMBER else f"{self.label}:{value_text(value)}"

    def code(self, value: Value) -> Array:
        """The coordinates that stand for `value`."""
        coordinates = np.zeros(self.size)
        if self.numerical and is_number(value):
            coordinates[self.index[NUMBER]] = float(value)
        else:
            coordinates[self.index[value]] = 1.0
        return coordinates

    def bos_code(self) -> Array:
        """The coordinates at the BOS position."""
        return np.array(self.at_bos) if self.at_bos else np.zeros(self.size)
