"""Tables as steps: each function here lists the steps that write the one-hot class of a table's value.

Classes are numbered from 0; a negative class writes nothing. A step reads sums of one-hot dimensions, whose numbers are
0 or 1 up to a small error, and `SLACK` leaves room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.graft.injection.circuit import BOS, HERE, IN_RANGE, ONE, TRIGGER, Dim, NeuronStep

__all__ = ["StepLine", "gated", "line_of", "line_steps", "pair_steps", "set_steps", "writes_clean"]

Array = NDArray[Any]
Classes = NDArray[np.int64]
Dims = Callable[[int], Dim]
"""The dimension of a class."""

SLACK = 0.8  # a step's margin, as a part of the half distance between the values it separates


def set_steps(reads: Dims, classes: Sequence[int], writes: Dims) -> list[NeuronStep]:
    """The steps of a table over one variable: `classes[i]` where its dimension `reads(i)` is on."""
    found = []
    for one in sorted({one for one in classes if one >= 0}):
        read = {reads(place): 1.0 for place, other in enumerate(classes) if other == one}
        found.append(NeuronStep(read | {ONE: -0.5}, 0.5 * SLACK, 0.5, {writes(one): 1.0}))
    return found


def pair_steps(first: Dims, second: Dims, table: Classes, writes: Dims) -> list[NeuronStep]:
    """The steps of a table over two variables. A step is on for a set of rows (or columns) and a set of the others."""
    options = [list(_boxes(first, second, table, writes)), list(_boxes(second, first, table.T, writes))]
    return min(options, key=len)


def _boxes(rows: Dims, columns: Dims, table: Classes, writes: Dims) -> Iterator[NeuronStep]:
    """The steps that treat equal rows alike."""
    patterns, of_row = np.unique(table, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        row = {rows(int(place)): 1.0 for place in np.flatnonzero(of_row.ravel() == number)}
        for one in sorted({int(one) for one in pattern if one >= 0}):
            places = np.flatnonzero(pattern == one)
            whole = len(places) == len(pattern)
            column = {} if whole else {columns(int(place)): 1.0 for place in places}
            threshold = {ONE: -0.5 if whole else -1.5}
            yield NeuronStep(_sum(row, column, threshold), 0.5 * SLACK, 0.5, {writes(one): 1.0})


@dataclass(frozen=True, eq=False)
class StepLine:
    """A linear function of dimensions: its values in ascending order, the class of each, and its value at BOS.

    `unit` is the dimension in whose units the values are.
    """

    reads: Mapping[Dim, float]
    points: Array
    classes: Classes
    at_bos: float = 0.0
    unit: Dim = ONE

    @property
    def borders(self) -> Array:
        """The places i where the classes of i and i + 1 differ."""
        return np.flatnonzero(self.classes[1:] != self.classes[:-1])


def line_of(reads: Mapping[Dim, float], points: Array, classes: Classes) -> StepLine | None:
    """The line whose value is in `points`; `None` if two equal points have different classes.

    Points of class -2, which no input reaches, are left out.
    """
    points, classes = points[classes > -2], classes[classes > -2]
    values, first, place = np.unique(points, return_index=True, return_inverse=True)
    if not np.array_equal(classes[first][place.ravel()], classes):
        return None
    return StepLine(reads, values, classes[first])


def writes_clean(line: StepLine) -> bool:
    """Whether dimensions that are off hold exactly 0: no class is the difference of two steps."""
    borders = line.borders
    inner = line.classes[borders[1:]] if len(borders) > 1 else np.zeros(0)
    return not (inner >= 0).any()


def line_steps(line: StepLine, writes: Dims) -> list[NeuronStep]:
    """The steps along a line. Each border between classes is a step; the class between two borders is a difference."""
    classes = line.classes
    if not len(line.borders):
        return [_everywhere(writes(one)) for one in map(int, classes[:1]) if one >= 0]
    found = []
    for number, border in enumerate(line.borders):
        left, right = int(classes[border]), int(classes[border + 1])
        if not number and left >= 0:
            found.append(_border(line, border, -1.0, {writes(left): 1.0}))
        written = {writes(right): 1.0} if right >= 0 else {}
        written |= {writes(left): -1.0} if number and left >= 0 else {}
        if written:
            found.append(_border(line, border, 1.0, written))
    return found


def _everywhere(writes: Dim) -> NeuronStep:
    """The step that is on everywhere but at BOS."""
    return NeuronStep({HERE: 1.0, ONE: -0.5}, 0.5 * SLACK, 0.5, {writes: 1.0})


def _border(line: StepLine, border: int, sign: float, written: Mapping[Dim, float]) -> NeuronStep:
    """The step at a border, on to the right of it if the sign is 1; always off at BOS."""
    below, above = float(line.points[border]), float(line.points[border + 1])
    middle, margin = (below + above) / 2, SLACK * (above - below) / 2
    farthest = sign * (float(line.points[-1 if sign > 0 else 0]) - middle)
    at_bos = max(sign * (line.at_bos - middle), 0.0)
    reads = {dim: sign * weight for dim, weight in line.reads.items()}
    return NeuronStep(_sum(reads, {line.unit: -sign * middle, BOS: -at_bos - margin}), margin, farthest, written)


def gated(step: NeuronStep, reach: Mapping[Dim, tuple[float, float]]) -> NeuronStep:
    """The step, off wherever no answer is asked for, on any input: `reach` has the least and most of each dimension."""
    most = 0.0
    for dim, weight in step.reads.items():
        low, high = reach.get(dim, (0.0, 1.0))
        most += max(weight * low, weight * high)
    away = most + step.margin
    reads = _sum(step.reads, {TRIGGER: away, IN_RANGE: away, ONE: -2 * away})
    return NeuronStep(reads, step.margin, step.farthest, step.writes)


def _sum(*terms: Mapping[Dim, float]) -> dict[Dim, float]:
    """The sum of linear functions."""
    total: dict[Dim, float] = {}
    for term in terms:
        for dim, weight in term.items():
            total[dim] = total.get(dim, 0.0) + weight
    return total
