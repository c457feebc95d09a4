"""Slot reuse by liveness: after its last read a dimension is cleared, and holds another variable.

Sub-layers are numbered by time: the embedding is -1, attention of layer l is 2l, its MLP 2l + 1. A variable is live
from the time it is written to the time it is last read. BOS, PAD and one are always live.

Clearing. Neurons read the content x of the slot and write -x: relu(x) if x is never negative, relu(x) and relu(-x) if
it may be negative. Nothing is rounded. The slot is then exactly 0 at every position, BOS and PAD included, and the new
variable is the same as in a slot of its own. Only MLPs clear: the first one that does not come before the last reader.

In place. If that MLP also writes the new variable a, it adds a - x to x, and both roundings of a - x + x count:

- If x is a code of 0, 1 and -1 and a is one too, the result is exact. The hidden values of a staircase are multiples of
  h >= 2**-23 up to 2**23 h (`staircase`); with an integer x up to 1, partial sums still need no more than 24 bits.
- If the error bound of a is `in_place.COVERS_ROUNDING` or more, and |a| and |x| are at most 1, the bound includes the
  roundings (`gates.sum_error`). Coordinates of a that are exactly 0 stay exact: only -x is added to x.

Otherwise the slot can be taken from the next sub-layer on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Variable
from tracr.ir.in_place import as_new, as_old, is_rough
from tracr.ir.layout import ALWAYS
from tracr.ir.schedule import Layer, Schedule
from tracr.ir.size import count_parameters

__all__ = ["Place", "Slots", "always", "last_reads", "reuse"]

Place = tuple[Variable, int]
"""A direction: the variable and which of its coordinates."""


@dataclass(frozen=True)
class Slots:
    """The slot of every direction, and the times from which and before which the direction is there."""

    slots: tuple[int, ...]
    since: tuple[int, ...]
    until: tuple[int, ...]

    @property
    def width(self) -> int:
        """How many slots there are."""
        return max(self.slots, default=-1) + 1


def always(schedule: Schedule, places: Sequence[Place]) -> Slots:
    """Every direction in a slot of its own, for good."""
    written = _written(schedule)
    since = tuple(written.get(variable, -1) for variable, _ in places)
    return Slots(tuple(range(len(places))), since, (ALWAYS,) * len(places))


def reuse(schedule: Schedule, places: Sequence[Place]) -> tuple[Schedule, Slots]:
    """The narrowest slots, and the schedule with the neurons that clear slots; unless that takes more parameters."""
    apart = always(schedule, places)
    turns = _turns(schedule, places, apart)
    narrowest = _Allocation(turns, width=0).allocated()
    if narrowest.width == apart.width:
        return schedule, apart
    slots = _Allocation(turns, width=narrowest.width).allocated()
    if slots.width > narrowest.width:
        slots = narrowest
    cleared = _with_clearing(schedule, places, slots)
    before, after = (
        sum(count_parameters(part, width).values()) for part, width in ((schedule, apart.width), (cleared, slots.width))
    )
    return (cleared, slots) if after <= before else (schedule, apart)


def _written(schedule: Schedule) -> dict[Variable, int]:
    times = dict.fromkeys((source.variable for source in schedule.embedded), -1)
    for time, components in schedule.sublayers():
        times.update({variable: time for component in components for variable, _ in component.writes})
    return times


def last_reads(schedule: Schedule) -> dict[Variable, int]:
    """The time of the last read of each variable; `ALWAYS` for outputs and variables that are always live."""
    last: dict[Variable, int] = {}

    def note(linear: LinearMap, time: int) -> None:
        last.update(dict.fromkeys(linear.blocks, time))

    for time, components in schedule.sublayers():
        for component in components:
            for linear in component.maps:
                note(linear, time)
    for linear in schedule.unembedded:
        note(linear, ALWAYS)
    return last | dict.fromkeys((BOS, PAD, ONE), ALWAYS)


class _Turn(NamedTuple):
    """When a direction is live, the first MLP that can clear it, and its properties from `in_place.py`."""

    since: int
    last: int
    cleared: int
    as_new: int
    as_old: int
    rough: bool


def _turns(schedule: Schedule, places: Sequence[Place], apart: Slots) -> list[_Turn]:
    last = last_reads(schedule)
    variables = dict.fromkeys(variable for variable, _ in places)
    short = schedule.options.format.short
    kinds = {one: (as_new(one, short=short), as_old(one), is_rough(one)) for one in variables}
    turns = []
    for (variable, _), since in zip(places, apart.since, strict=True):
        end = max(last.get(variable, -1), since + 1)  # without prune some are never read
        turns.append(_Turn(since, end, end | 1, *kinds[variable]))
    return turns


class _Allocation:
    """Gives out slots in the order of time: up to `width` fresh slots first, then slots that can be cleared."""

    def __init__(self, turns: Sequence[_Turn], width: int) -> None:
        self.turns, self.width = turns, width
        self.slots = [-1] * len(turns)
        self.until = [ALWAYS] * len(turns)
        self.dead: dict[int, None] = {}  # directions whose slots may be taken, in the order of their ends
        self.cleared: deque[int] = deque()  # directions whose slots are already cleared
        self.ending: dict[int, deque[tuple[int, int]]] = {}  # directions being cleared, with their order, by `as_old`
        self.count = 0

    def allocated(self) -> Slots:
        """Give every direction a slot."""
        times = sorted({turn.since for turn in self.turns})
        starting: list[list[int]] = [[] for _ in times]
        ended: list[list[int]] = [[] for _ in (*times, ALWAYS)]
        for number, turn in enumerate(self.turns):
            starting[bisect_left(times, turn.since)].append(number)
            ended[bisect_left(times, turn.last)].append(number)
        for time, new, old in zip(times, starting, ended, strict=False):
            self.dead.update(dict.fromkeys(old))
            self._sort_dead(time)
            for number in sorted(new, key=lambda number: self.turns[number].rough):
                self._place(number)
        return Slots(tuple(self.slots), tuple(turn.since for turn in self.turns), tuple(self.until))

    def _sort_dead(self, time: int) -> None:
        """Find the directions whose slots may be taken at a time: those cleared before, and those being cleared."""
        self.cleared, self.ending = deque(), {}
        for order, number in enumerate(self.dead):
            turn = self.turns[number]
            if turn.cleared < time:
                self.cleared.append(number)
            elif turn.cleared == time:
                self.ending.setdefault(turn.as_old, deque()).append((order, number))

    def _place(self, number: int) -> None:
        old = None if self.count < self.width else self._old(number)
        if old is None:
            self.slots[number] = self.count
            self.count += 1
            return
        del self.dead[old]
        self.slots[number] = self.slots[old]
        self.until[old] = self.turns[old].cleared

    def _old(self, number: int) -> int | None:
        """The first direction to end whose slot can be taken: a cleared one, else one that can be overwritten."""
        if self.cleared:
            return self.cleared.popleft()
        level = self.turns[number].as_new
        fitting = [ends for old, ends in self.ending.items() if ends and 0 < level <= old]
        return min(fitting, key=lambda ends: ends[0]).popleft()[1] if fitting else None


def _with_clearing(schedule: Schedule, places: Sequence[Place], slots: Slots) -> Schedule:
    """The schedule with a group of neurons for every variable that is cleared."""
    signed = _signed(schedule)
    jobs: dict[int, dict[Variable, list[int]]] = {}
    for (variable, place), until in zip(places, slots.until, strict=True):
        if until < ALWAYS:
            jobs.setdefault(until, {}).setdefault(variable, []).append(place)
    layers = list(schedule.layers)
    for time, cleared in jobs.items():
        groups = tuple(_clearing(variable, rows, variable in signed) for variable, rows in cleared.items())
        layer = layers[time // 2]
        layers[time // 2] = Layer(layer.heads, layer.mlps + groups)
    return replace(schedule, layers=tuple(layers))


def _signed(schedule: Schedule) -> set[Variable]:
    """Variables that may be negative: bits, negative numbers, results of neurons with an error, and their copies."""

    def may_be_negative(variable: Variable) -> bool:
        return (
            bool(variable.compact or variable.noise.cold)
            or min(variable.at_bos, default=0.0) < 0
            or (variable.numerical and variable.low < 0)
        )

    found = {variable for variable in _written(schedule) if may_be_negative(variable)}
    for _, components in schedule.sublayers():
        for part in components:
            written = [variable for variable, _ in part.writes]
            if isinstance(part, MLP):
                found.update(variable for variable in written if variable.noise.error > 0)
            elif not found.isdisjoint(part.value.blocks):
                found.update(written)
    return found


def _clearing(variable: Variable, rows: list[int], signed: bool) -> MLP:
    """Neurons that clear these coordinates of a variable."""
    pick = np.zeros((variable.size, len(rows)))
    pick[rows, range(len(rows))] = 1.0
    read = np.concatenate([pick, -pick], axis=1) if signed else pick
    what, clears = f"clears {variable.label}", ((variable, -read.T),)
    return MLP(f"-{variable.label}", LinearMap.of(variable, read), (), what, clears=clears)
