"""Step 5: construct the model: the residual stream as the direct sum of the variables' spaces.

Every variable gets its own directions, in the order tokens, BOS, PAD, indices, one, then as written. At level 0 all of
them are kept, and constants come from the direction `one`. From level 1 on, constants are biases, and directions that
nothing reads are dropped, with the neurons that only write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.circuit import Component
from tracr.compiler.options import Options
from tracr.compiler.schedule import Layer, Schedule
from tracr.compiler.trace import unique_labels
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Array, Number, Variable
from tracr.errors import CompileError
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value

__all__ = ["Construction", "Direction", "construct"]


@dataclass(frozen=True, eq=False)
class Direction:
    """One dimension of the residual stream: the variable it belongs to, and the value it stands for."""

    label: str
    variable: Variable
    value: Value | Number
    place: int


@dataclass(frozen=True, eq=False)
class Construction:
    """The stacked layers and the labelled directions they read and write."""

    schedule: Schedule
    layers: tuple[Layer, ...]
    directions: tuple[Direction, ...]

    @cached_property
    def slots(self) -> dict[Variable, NDArray[np.intp]]:
        """For each variable, the dimension of each of its directions (-1 where it was dropped)."""
        found: dict[Variable, NDArray[np.intp]] = {}
        for number, direction in enumerate(self.directions):
            places = found.setdefault(direction.variable, np.full(direction.variable.size, -1))
            places[direction.place] = number
        return found

    def verify(self) -> None:
        """Raise if two directions share a label or a place."""
        labels = [direction.label for direction in self.directions]
        if len(set(labels)) != len(labels):
            double = sorted({label for label in labels if labels.count(label) > 1})
            raise CompileError(f"several directions of the residual stream are called {double}")
        places = {(direction.variable, direction.place) for direction in self.directions}
        if len(places) != len(labels):
            raise CompileError("one direction of a variable stands at two places")

    def show(self) -> str:
        """The labels of the residual stream, then the layers."""
        return "residual stream: " + ", ".join(d.label for d in self.directions) + "\n" + self.schedule.show()


def construct(schedule: Schedule, options: Options) -> Construction:
    """Lay out the residual stream."""
    circuit = schedule.circuit
    embedded = [source.variable for source in circuit.embedded]
    tokens = [variable for variable in embedded if variable.label == "tokens"]
    indices = [variable for variable in embedded if variable.label == "indices"]
    if options.level == 0:
        tokens = tokens or [Variable("tokens", Encoding.CATEGORICAL, options.vocab)]
        indices = indices or [Variable("indices", Encoding.CATEGORICAL, tuple(range(options.max_seq_len)))]
    rest = [variable for variable in embedded if variable not in tokens and variable not in indices]
    order = [*tokens, BOS, PAD, *indices, *([ONE] if options.level == 0 else []), *rest, *circuit.variables]
    places = [(variable, place) for variable in order for place in range(variable.size)]
    labels = unique_labels([_label(variable, place, options) for variable, place in places])
    directions = tuple(
        Direction(label, variable, variable.values[place], place)
        for label, (variable, place) in zip(labels, places, strict=True)
    )
    whole = Construction(schedule, schedule.layers, directions)
    return whole if options.level == 0 else drop_unread(whole)


def _label(variable: Variable, place: int, options: Options) -> str:
    if variable is BOS or variable is PAD:
        return f"tokens:{options.bos if variable is BOS else options.pad}"
    return variable.labels()[place]


def drop_unread(construction: Construction) -> Construction:
    """Remove directions nothing reads, and neurons and values that only write them; from the last layer backwards."""
    schedule = construction.schedule
    read: dict[Variable, NDArray[np.bool_]] = {
        variable: np.ones(variable.size, dtype=bool) for _, variable in schedule.circuit.outputs
    }
    layers: list[Layer] = []
    for layer in reversed(schedule.layers):
        mlps = [trimmed for part in layer.mlps if (trimmed := _trim_mlp(part, read)) is not None]
        _mark(read, [part.read for part in mlps])
        heads = [live for part in layer.heads if (live := _trim_head(part, read)) is not None]
        _mark(read, [linear for part in heads for linear in (part.query, part.key, part.value)])
        layers.append(Layer(tuple(heads), tuple(mlps)))
    kept = tuple(
        direction
        for direction in construction.directions
        if direction.variable in read and read[direction.variable][direction.place]
    )
    return Construction(schedule, tuple(reversed(layers)), kept)


def _mark(read: dict[Variable, NDArray[np.bool_]], maps: list[LinearMap]) -> None:
    for linear in maps:
        for variable, block in linear.blocks.items():
            rows = read.setdefault(variable, np.zeros(variable.size, dtype=bool))
            rows |= block.any(axis=1)


def _live_writes(part: Component, read: dict[Variable, NDArray[np.bool_]]) -> list[tuple[Variable, Array]]:
    """What a component writes into directions that are read."""
    return [
        (variable, np.where(read[variable], matrix, 0.0))
        for variable, matrix in part.writes
        if variable in read and read[variable].any()
    ]


def _trim_mlp(part: MLP, read: dict[Variable, NDArray[np.bool_]]) -> MLP | None:
    writes = _live_writes(part, read)
    if not writes:
        return None
    used = np.any([matrix.any(axis=1) for _, matrix in writes], axis=0)
    return MLP(
        part.label, _columns(part.read, used), tuple((variable, matrix[used]) for variable, matrix in writes), part.what
    )


def _trim_head(part: Head, read: dict[Variable, NDArray[np.bool_]]) -> Head | None:
    writes = _live_writes(part, read)
    if not writes:
        return None
    used = np.any([matrix.any(axis=1) for _, matrix in writes], axis=0)
    value = _columns(part.value, used)
    kept = tuple((variable, matrix[used]) for variable, matrix in writes)
    return Head(part.label, part.query, part.key, value, kept, part.selector, part.what)


def _columns(linear: LinearMap, used: NDArray[np.bool_]) -> LinearMap:
    blocks = {variable: block[:, used] for variable, block in linear.blocks.items()}
    return LinearMap(blocks, int(used.sum()))
