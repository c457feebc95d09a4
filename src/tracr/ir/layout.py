"""The layout of the residual stream: the dimension of every direction, and from when to when it is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.craft.variables import Bit, Feature, Number, Variable
from tracr.errors import InternalError
from tracr.ir.schedule import Layer, Schedule
from tracr.ir.size import Size, size_of
from tracr.values import Value

__all__ = ["ALWAYS", "Direction", "Layout"]

ALWAYS = 2**31
"""The `until` of a direction that stays until the last layer."""


class Direction(NamedTuple):
    """One direction of the residual stream: the variable it belongs to, and the value it stands for.

    It is stored in dimension `slot` from sub-layer `since` on and before sub-layer `until`. Sub-layers are numbered as
    in `slot_reuse.py`.
    """

    label: str
    variable: Variable
    value: Value | Number | Bit | Feature
    place: int
    slot: int
    since: int = -1
    until: int = ALWAYS

    def held(self, time: int) -> bool:
        """Whether the stream holds this direction after a sub-layer."""
        return self.since <= time < self.until


@dataclass(frozen=True, eq=False)
class Layout:
    """The stacked layers and the labelled directions they read and write."""

    schedule: Schedule
    directions: tuple[Direction, ...]

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The blocks of the transformer."""
        return self.schedule.layers

    @cached_property
    def width(self) -> int:
        """How many dimensions the residual stream has."""
        return max((direction.slot for direction in self.directions), default=-1) + 1

    @cached_property
    def size(self) -> Size:
        """How large the model is."""
        return size_of(self.schedule, self.width)

    @cached_property
    def slots(self) -> dict[Variable, NDArray[np.intp]]:
        """For each variable, the dimension of each of its directions (-1 if the direction was dropped)."""
        found: dict[Variable, NDArray[np.intp]] = {}
        for direction in self.directions:
            if direction.variable not in found:
                found[direction.variable] = np.full(direction.variable.size, -1)
            found[direction.variable][direction.place] = direction.slot
        return found

    def verify(self) -> None:
        """Raise if two directions share a label or a place, or a dimension at the same time."""
        labels = [direction.label for direction in self.directions]
        if len(set(labels)) != len(labels):
            double = sorted({label for label in labels if labels.count(label) > 1})
            raise InternalError(f"several directions of the residual stream are called {double}")
        places = {(direction.variable, direction.place) for direction in self.directions}
        if len(places) != len(labels):
            raise InternalError("one direction of a variable occurs twice in the residual stream")
        if len({direction.slot for direction in self.directions}) == len(labels):
            return
        ends: dict[int, int] = {}
        for direction in sorted(self.directions, key=lambda one: one.since):
            if ends.get(direction.slot, -1) > direction.since:
                raise InternalError(f"{direction.label} is written into a dimension that still holds another direction")
            ends[direction.slot] = direction.until

    def show(self) -> str:
        """The labels of the residual stream, the dimensions that hold several of them in turn, then the layers."""
        lines = ["residual stream: " + ", ".join(d.label for d in self.directions)]
        for slot in range(self.width if self.width < len(self.directions) else 0):
            held = sorted((d for d in self.directions if d.slot == slot), key=lambda d: d.since)
            if len(held) > 1:
                lines.append(f"dimension {slot}: {', then '.join(d.label for d in held)}")
        return "\n".join([*lines, self.schedule.show()])
