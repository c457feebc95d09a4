"""Step 5: construct the model: the residual stream as the direct sum of the variables' spaces.

Every variable gets its own directions, in the order tokens, BOS, PAD, indices, one, then as written; with the option
`output_first` the outputs come before them, each value's direction in the order of the unembedding. At level 0 all of
them are there, and constants come from the direction `one`. From level 1 on, constants are biases, and directions that
nothing reads (`prune.py`) are left out. At level 2 directions that are not there at the same time share a dimension
(`reuse.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.options import Options
from tracr.compiler.reuse import ALWAYS, Layout, Place, always, reuse
from tracr.compiler.schedule import Layer, Schedule
from tracr.compiler.trace import unique_labels
from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Bit, Feature, Number, Variable
from tracr.errors import InternalError
from tracr.rasp.values import Value

__all__ = ["Construction", "Direction", "construct", "lay_out"]


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction of the residual stream: the variable it belongs to, and the value it stands for.

    It is dimension `slot` of the stream from sub-layer `since` on and before sub-layer `until` (`reuse.py` numbers
    them).
    """

    label: str
    variable: Variable
    value: Value | Number | Bit | Feature
    place: int
    slot: int
    since: int = -1
    until: int = ALWAYS

    def held(self, time: int) -> bool:
        """Whether it is there after a sub-layer."""
        return self.since <= time < self.until


@dataclass(frozen=True, eq=False)
class Construction:
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
    def slots(self) -> dict[Variable, NDArray[np.intp]]:
        """For each variable, the dimension of each of its directions (-1 where it was dropped)."""
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
            raise InternalError("one direction of a variable stands at two places")
        ends: dict[int, int] = {}
        for direction in sorted(self.directions, key=lambda one: one.since):
            if ends.get(direction.slot, -1) > direction.since:
                raise InternalError(f"{direction.label} is written where another direction still is")
            ends[direction.slot] = direction.until

    def show(self) -> str:
        """The labels of the residual stream, then the layers."""
        return "residual stream: " + ", ".join(d.label for d in self.directions) + "\n" + self.schedule.show()


def construct(schedule: Schedule, options: Options) -> Construction:
    """The residual stream with its labels."""
    schedule, places, layout = lay_out(schedule, options)
    labels = unique_labels([_label(variable, place, options) for variable, place in places])
    spans = zip(layout.slots, layout.since, layout.until, strict=True)
    directions = tuple(
        Direction(label, variable, variable.held(place), place, *span)
        for label, (variable, place), span in zip(labels, places, spans, strict=True)
    )
    return Construction(schedule, directions)


def lay_out(schedule: Schedule, options: Options) -> tuple[Schedule, list[Place], Layout]:
    """The schedule with what clears directions, all directions in order, and where they are."""
    circuit = schedule.circuit
    embedded = [source.variable for source in circuit.embedded]
    tokens = [variable for variable in embedded if variable.label == "tokens"]
    indices = [variable for variable in embedded if variable.label == "indices"]
    rest = [variable for variable in embedded if variable not in tokens and variable not in indices]
    order = [*tokens, BOS, PAD, *indices, *([ONE] if options.level == 0 else []), *rest, *circuit.variables]
    if options.output_first:
        order = list(dict.fromkeys([*(variable for _, variable in circuit.outputs if variable in order), *order]))
    places = [(variable, place) for variable in order for place in circuit.kept(variable)]
    places = places or [(BOS, 0)]  # a program that is always 0 reads nothing, but a stream has a dimension
    if not options.on("reuse"):
        return schedule, places, always(schedule, places)
    schedule, layout = reuse(schedule, places)
    return schedule, places, layout


def _label(variable: Variable, place: int, options: Options) -> str:
    if variable is BOS or variable is PAD:
        return f"tokens:{options.bos if variable is BOS else options.pad}"
    return variable.direction_label(place)
