"""What the residual stream can hold: each variable's codes and numbers, and multiples of what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.numerics import low_bits
from tracr.craft.variables import Number, Variable

if TYPE_CHECKING:
    from tracr.ir.layout import Direction
    from tracr.model.compiled import CompiledModel

__all__ = ["NEVER", "Stream", "at_bos", "at_tokens", "quanta", "rough_from"]

Array = NDArray[Any]
NEVER = 2**31  # a time after every sub-layer


@dataclass(frozen=True, eq=False)
class _Held:
    """A variable in the stream: rows of what it can hold, from when to when."""

    rows: Array
    since: int
    until: int


@dataclass(frozen=True, eq=False)
class Stream:
    """What the residual stream can hold at a kind of position.

    `grids` [sub-layer, dimension] says what each dimension holds multiples of, from after the embedding on: infinity
    for nothing but 0, 0 where that is not known.
    """

    held: tuple[_Held, ...]
    grids: Array

    def along(self, write: Array) -> Stream:
        """The same in another basis."""
        held = tuple(_Held(_times(one.rows, write), one.since, one.until) for one in self.held)
        kinds, which = np.unique(self.grids, axis=0, return_inverse=True)
        return Stream(held, np.stack([quanta(write, grids).min(axis=0) for grids in kinds])[which.reshape(-1)])

    def grid(self, time: int) -> Array:
        """What each dimension holds multiples of after a sub-layer."""
        return np.asarray(self.grids[time + 1])

    def sizes(self, time: int) -> Array:
        """A bound on the size of each dimension after a sub-layer."""
        return self._largest(np.abs, time, self.grids.shape[1])

    def partial_sums(self, weights: Array, time: int) -> Array:
        """A bound on all partial sums of the stream times weights [dimension, column]."""
        sizes = np.abs(weights)
        return self._largest(lambda rows: _times(np.abs(rows), sizes), time, weights.shape[1])

    def sums(self, weights: Array, time: int) -> Array:
        """A bound from above, not below 0, on the stream times weights [dimension, column]."""
        return self._largest(lambda rows: _times(rows, weights), time, weights.shape[1])

    def _largest(self, of: Callable[[Array], Array], time: int, columns: int) -> Array:
        total = np.zeros(columns)
        for one in self.held:
            if one.since <= time < one.until:
                total += np.maximum(of(one.rows).max(axis=0), 0.0)
        return total

    def multiples(self, weights: Array, time: int) -> Array:
        """What the columns of weights [dimension, column] times the stream give multiples of."""
        there = self.sizes(time) > 0
        return np.asarray(quanta(weights[there], self.grid(time)[there]).min(axis=0, initial=np.inf))


def quanta(matrix: Array, grids: Array) -> Array:
    """What the entries of a matrix, times multiples of `grids`, are multiples of; infinity where there is nothing."""
    return np.where(matrix != 0, low_bits(matrix) * np.where(matrix != 0, grids[:, None], 1.0), np.inf)


def _times(rows: Array, weights: Array) -> Array:
    """`rows @ weights`, with only the columns of `rows` that are not all 0."""
    used = rows.any(axis=0)
    return np.asarray(rows[:, used] @ weights[used])


def at_tokens(model: CompiledModel, times: range) -> Stream:
    """What there can be at a token, after each of the sub-layers."""
    return Stream(tuple(_held(model)), _grids(model, times))


def at_bos(model: CompiledModel, times: range) -> Stream:
    """What there is at BOS, which is always the same."""
    rows = [_at_bos(model, time) for time in times]
    held = tuple(_Held(row[None, :], time, time + 1) for row, time in zip(rows, times, strict=True))
    return Stream(held, low_bits(np.array(rows)))


def _at_bos(model: CompiledModel, time: int) -> Array:
    """What the BOS position holds after a sub-layer."""
    stream = np.zeros(model.layout.width)
    for direction in model.layout.directions:
        if direction.held(time):
            special = direction.variable in (BOS, ONE)
            stream[direction.slot] = 1.0 if special else direction.variable.bos_code()[direction.place]
    return stream


def _held(model: CompiledModel) -> Iterator[_Held]:
    """The variables of a model, each with the rows that it can hold."""
    layout, embedded = model.layout, _embedded(model)
    spans: dict[Variable, tuple[int, int]] = {}
    for direction in layout.directions:
        since, until = spans.get(direction.variable, (direction.since, direction.until))
        spans[direction.variable] = min(since, direction.since), max(until, direction.until)
    for variable, slots in layout.slots.items():
        if variable in (BOS, PAD):
            continue
        live = slots >= 0
        codes = embedded[variable] if variable in embedded else _codes(variable)
        rows = np.zeros((len(codes), layout.width))
        rows[:, slots[live]] = codes[:, live]
        yield _Held(rows, *spans[variable])


def _codes(variable: Variable) -> Array:
    """What a variable can hold: all its codes, or the ends of its numbers; 1 for what is 1 everywhere."""
    if variable is ONE:
        return np.ones((1, 1))
    if variable.codebook is not None:
        return variable.codebook
    if not variable.numerical:
        return np.eye(variable.size)
    number = next(place for place, value in enumerate(variable.values) if isinstance(value, Number))
    ends = np.zeros((2, variable.size))
    ends[:, number] = variable.low, variable.high
    return np.concatenate([np.delete(np.eye(variable.size), number, axis=0), ends])


def _embedded(model: CompiledModel) -> dict[Variable, Array]:
    """The rows that the embedding writes, by variable."""
    found = {}
    for source in model.circuit.embedded:
        rows = source.by_token if source.by_token is not None else source.by_position
        assert rows is not None
        found[source.variable] = rows
    return found


def _grid(direction: Direction, embedded: dict[Variable, Array]) -> float:
    """What a direction holds multiples of; 0 if that is not known."""
    variable, place = direction.variable, direction.place
    if variable in embedded:
        grid = float(low_bits(embedded[variable][:, place]).min(initial=np.inf))
    elif isinstance(direction.value, Number):
        grid = 1.0 if variable in (BOS, PAD, ONE) else variable.noise.grid
    else:
        grid = 1.0 if variable.codebook is None else float(low_bits(variable.codebook[:, place]).min())
    return min(grid, float(low_bits(variable.bos_code()[place])))


def _grids(model: CompiledModel, times: range) -> Array:
    """What each slot holds multiples of after each sub-layer: infinity for nothing, 0 where that is not known."""
    grids, embedded = np.full((len(times), model.layout.width), np.inf), _embedded(model)
    for direction in model.layout.directions:
        turn = grids[direction.since + 1 : max(direction.until + 1, 0), direction.slot]
        turn[:] = np.minimum(turn, _grid(direction, embedded))
    return grids


def rough_from(model: CompiledModel) -> NDArray[np.intp]:
    """From which sub-layer on a slot holds something with an error; `NEVER` if it does not."""
    found, embedded = np.full(model.layout.width, NEVER), _embedded(model)
    for direction in model.layout.directions:
        noise = direction.variable.noise
        exact = direction.variable in embedded or noise.error == 0.0 == noise.cold
        if not exact or _grid(direction, embedded) == 0.0:
            found[direction.slot] = min(found[direction.slot], direction.since)
    return found
