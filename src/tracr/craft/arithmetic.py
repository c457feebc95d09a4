"""Arithmetic of numbers: lines through points, numbers carried along, and sums divided by counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tracr.craft.formats import FLOAT32, Format
from tracr.craft.gates import Others, bias_of, constant_row, gated, other_rows, sum_error
from tracr.craft.linear import LinearMap, NumberRead, present, read_code
from tracr.craft.lookups import look_up
from tracr.craft.mlps import Units, join
from tracr.craft.numerics import CLEAN, Noise, U, dyadic_grid
from tracr.craft.variables import Array, Variable
from tracr.nearness import CANCELLED

__all__ = ["carry", "divide", "interpolate"]


def interpolate(
    read: NumberRead, points: Array, numbers: Array, others: Others, width: int, to: Format = FLOAT32
) -> Units:
    """The piecewise linear function through (points, numbers), one neuron per change of slope.

    f(x) = f_0 + sum_i (slope_i - slope_{i-1}) relu(x - x_i). The steepest slope amplifies the input error, and rounding
    adds `sum_error`. But on a grid (x and x_i multiples of g, changes of slope multiples of h) nothing is rounded if
    all partial sums, multiples of g*h, fit into 24 bits. In a short format only this is precise; in addition the format
    must hold x, x - x_i, the changes of slope and the results.
    """
    slopes = np.diff(numbers) / np.diff(points) if len(points) > 1 else np.zeros(0)
    turns = np.diff(slopes, prepend=0.0)
    kept = np.abs(turns) > CANCELLED * max(1.0, float(np.abs(slopes).max(initial=0.0)))
    turns, places = turns[kept], points[:-1][kept]
    write = np.zeros((len(turns), width))
    write[:, 0] = turns
    first = np.zeros(width)
    first[0] = numbers[0]
    largest = read.largest + float(np.abs(points).max(initial=0.0))
    hidden = gated(read, read.number.then(np.ones((1, len(places)))), np.full(len(places), 2 * largest + 1), -places)
    steepest = float(np.abs(slopes).max(initial=0.0))
    error = steepest * read.noise.error + 4 * U * float(np.abs(numbers).max(initial=0.0))
    error += float(sum_error(np.abs(turns)[:, None], largest, read.high - read.low)[0])
    steps = min(read.noise.grid, dyadic_grid(points.tolist())) * dyadic_grid([*turns.tolist(), *numbers[:1].tolist()])
    reach = float(np.abs(turns).sum()) * (read.high - read.low) + float(np.abs(numbers[:1]).sum())
    if steps and read.noise.error == 0.0 and reach / steps <= 2**24:
        error = 0.0
    if to.short:
        grid = min(read.noise.grid, dyadic_grid(points.tolist(), to))
        held = to.holds(turns) and to.holds(numbers) and largest <= to.steps * grid
        error = error if held and error == 0.0 else float("inf")
    parts = [Units(hidden, write, Noise(error=error))] if len(places) else []
    if first.any() or not parts:
        parts.append(constant_row(read, first))
    return join(*parts, *other_rows(read, others))


def carry(read: NumberRead, constant: float, others: Others, width: int, to: Format = FLOAT32) -> Units:
    """The number itself plus a constant: relu(z) - relu(-z), and a gated neuron for the constant.

    A short format rounds z and the result, unless it holds the multiples of the grid up to their size.
    """
    write = np.zeros((2, width))
    write[:, 0] = [1.0, -1.0]
    pair = read.number.then(np.array([[1.0, -1.0]]))
    if read.flags:
        pair = gated(read, pair, np.full(2, 2 * read.largest + 1))
    noise = read.noise
    if to.short and not (noise.grid and read.largest + abs(constant) <= to.steps * noise.grid):
        noise = Noise(noise.error + 2 * to.roundoff * (read.largest + abs(constant)))
    parts = [Units(pair, write, noise)]
    if constant:
        first = np.zeros(width)
        first[0] = constant
        parts.append(constant_row(read, first, to))
    units = join(*parts, *other_rows(read, others))
    if read.flags:
        return units
    return replace(units, as_linear=partial(_carried, read.number, constant, width))


def _carried(number: LinearMap, constant: float, width: int) -> LinearMap:
    first = np.eye(1, width)
    return number.then(first) + present().then(constant * first) if constant else number.then(first)


def divide(
    total: LinearMap,
    flags: Sequence[tuple[int, LinearMap]],
    counts: Variable,
    largest: float,
    error: float,
    default: Array | None,
    width: int,
) -> Units:
    """A sum, at most `largest`, divided by the count in the one-hot code `counts`; the `default` if the count is 0.

    For each count w, let h be 1 if w is the count and 0 otherwise, and A = 2 largest / w. Then
    relu(sum/w + A(2h - 1)) - relu(A(2h - 1)) is sum/w for h = 1, because A is larger than sum/w, and 0 for h = 0,
    because -A + sum/w is negative. An error of h below 1/4 cancels; rounding adds at most 8 U A.

    `flags` (a place, and the number of selected keys whose value is not a number) are passed on if one key is selected.
    """
    code = read_code(counts)
    numbers = np.array([float(value) for value in counts.values if isinstance(value, int)])
    positive = np.flatnonzero(numbers > 0)
    jobs = [(total, place, 1 / numbers[place], 2 * max(largest, 1.0) / numbers[place], 0) for place in positive]
    ones = np.flatnonzero(numbers == 1)
    most = float(numbers.max())
    jobs += [(flag, place, 1.0, 2 * most, at) for at, flag in flags for place in ones]
    parts = []
    for amount, place, factor, reach, at in jobs:
        gate = np.zeros((counts.size, 1))
        gate[place] = 2 * reach
        off = code.then(gate) + bias_of(np.array([-reach]))
        read = (off + amount.then(np.array([[factor]]))).beside(off)
        write = np.zeros((2, width))
        write[:, at] = [1.0, -1.0]
        parts.append(Units(read, write, Noise()))
    if default is not None:
        table = np.where((numbers == 0)[:, None], default, 0.0)
        parts.append(look_up(code.then, table, Noise(error=2 * CLEAN, cold=1.0), merge=False))
    smallest = float(numbers[positive].min(initial=most))
    rounding = 16 * U * max(largest, 1.0) / max(smallest, 1.0)
    units = join(*parts)
    return replace(units, noise=Noise(error=error + rounding + units.noise.error))
