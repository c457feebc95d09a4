"""The possible contents of the residual stream: each variable's codes or numbers, and their powers of two."""

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
    from tracr.model.designed import DesignedModel

__all__ = ["NEVER", "Stream", "at_bos", "at_tokens", "quanta", "rough_from"]

Array = NDArray[Any]
NEVER = 2**31  # a time after every sub-layer


@dataclass(frozen=True, eq=False)
class _Held:
    """A variable in the stream: its possible contents, a row each, and the first and last time they are there."""

    rows: Array
    since: int
    until: int


@dataclass(frozen=True, eq=False)
class Stream:
    """The possible contents of the residual stream at a token, or at BOS.

    `grids` [sub-layer, dimension] has a power of two that divides each number in the dimension, first after the
    embedding; infinity if the dimension is 0, and 0 if no power of two is known.
    """

    held: tuple[_Held, ...]
    grids: Array

    def along(self, write: Array) -> Stream:
        """The contents in another basis."""
        held = tuple(_Held(_times(one.rows, write), one.since, one.until) for one in self.held)
        kinds, which = np.unique(self.grids, axis=0, return_inverse=True)
        return Stream(held, np.stack([quanta(write, grids).min(axis=0) for grids in kinds])[which.reshape(-1)])

    def grid(self, time: int) -> Array:
        """A power of two that divides the contents of each dimension after a sub-layer (see `grids`)."""
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
        """A power of two that divides the stream times each column of weights [dimension, column]."""
        there = self.sizes(time) > 0
        return np.asarray(quanta(weights[there], self.grid(time)[there]).min(axis=0, initial=np.inf))


def quanta(matrix: Array, grids: Array) -> Array:
    """A power of two that divides the entries of a matrix times multiples of `grids`; infinity for 0."""
    return np.where(matrix != 0, low_bits(matrix) * np.where(matrix != 0, grids[:, None], 1.0), np.inf)


def _times(rows: Array, weights: Array) -> Array:
    """`rows @ weights`, with only the columns of `rows` that are not all 0."""
    used = rows.any(axis=0)
    return np.asarray(rows[:, used] @ weights[used])


def at_tokens(model: DesignedModel, times: range) -> Stream:
    """The possible contents at a token, after each of the sub-layers."""
    return Stream(tuple(_held(model)), _grids(model, times))


def at_bos(model: DesignedModel, times: range) -> Stream:
    """The contents at BOS, which are the same for every input."""
    rows = [_at_bos(model, time) for time in times]
    held = tuple(_Held(row[None, :], time, time + 1) for row, time in zip(rows, times, strict=True))
    return Stream(held, low_bits(np.array(rows)))


def _at_bos(model: DesignedModel, time: int) -> Array:
    """The contents of the BOS position after a sub-layer."""
    stream = np.zeros(model.layout.width)
    for direction in model.layout.directions:
        if direction.held(time):
            special = direction.variable in (BOS, ONE)
            stream[direction.slot] = 1.0 if special else direction.variable.bos_code()[direction.place]
    return stream


def _held(model: DesignedModel) -> Iterator[_Held]:
    """The variables of a model, each with its possible contents."""
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
    """The possible contents of a variable: all its codes, or its smallest and largest number; 1 for the constant."""
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


def _embedded(model: DesignedModel) -> dict[Variable, Array]:
    """The rows that the embedding writes, by variable."""
    found = {}
    for source in model.circuit.embedded:
        rows = source.by_token if source.by_token is not None else source.by_position
        assert rows is not None
        found[source.variable] = rows
    return found


def _grid(direction: Direction, embedded: dict[Variable, Array]) -> float:
    """A power of two that divides the contents of a direction; 0 if none is known."""
    variable, place = direction.variable, direction.place
    if variable in embedded:
        grid = float(low_bits(embedded[variable][:, place]).min(initial=np.inf))
    elif isinstance(direction.value, Number):
        grid = 1.0 if variable in (BOS, PAD, ONE) else variable.noise.grid
    else:
        grid = 1.0 if variable.codebook is None else float(low_bits(variable.codebook[:, place]).min())
    return min(grid, float(low_bits(variable.bos_code()[place])))


def _grids(model: DesignedModel, times: range) -> Array:
    """A power of two that divides the contents of each slot after each sub-layer (see `Stream.grids`)."""
    grids, embedded = np.full((len(times), model.layout.width), np.inf), _embedded(model)
    for direction in model.layout.directions:
        turn = grids[direction.since + 1 : max(direction.until + 1, 0), direction.slot]
        turn[:] = np.minimum(turn, _grid(direction, embedded))
    return grids


def rough_from(model: DesignedModel) -> NDArray[np.intp]:
    """The first sub-layer after which each slot holds a number with an error; `NEVER` if there is none."""
    found, embedded = np.full(model.layout.width, NEVER), _embedded(model)
    soft = model.options.soft is not None and not model.options.soft.bounded
    for direction in model.layout.directions:
        noise = direction.variable.noise
        exact = direction.variable in embedded or (noise.error == 0.0 == noise.cold and not soft)
        if not exact or _grid(direction, embedded) == 0.0:
            found[direction.slot] = min(found[direction.slot], direction.since)
    return found
