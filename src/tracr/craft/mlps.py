"""MLPs from tables: lookups of one-hot codes and of bits, staircases and interpolations of numbers, weighted sums.

All of them write zero at the BOS position: their inputs read as zero there, and constants are gated by BOS. Therefore a
head whose query selects no key reads no MLP's output at BOS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tracr.caching import cached_property
from tracr.craft.formats import FLOAT32, Format
from tracr.craft.grouping import group_rows
from tracr.craft.linear import BOS, ONE, LinearMap, NumberRead, present, read_code
from tracr.craft.numerics import CLEAN, LANES, Noise, U, dyadic_grid, power_of_two_above
from tracr.craft.variables import Array, Variable
from tracr.nearness import CANCELLED
from tracr.values import Value

__all__ = [
    "MLP",
    "Units",
    "carry",
    "cell_staircase",
    "divide",
    "interpolate",
    "join",
    "look_up",
    "look_up_bits",
    "look_up_pairs",
    "staircase",
]

Others = Mapping[Value, Array]  # rows for the values that are not numbers


@dataclass(frozen=True, eq=False)
class MLP:
    """relu(read) @ write: a group of neurons that computes one variable."""

    label: str
    read: LinearMap
    writes: tuple[tuple[Variable, Array], ...]
    what: str
    as_linear: Callable[[], LinearMap] | None = None
    """Computes `linear`."""
    clears: tuple[tuple[Variable, Array], ...] = ()
    """The variables whose slots it clears, and the maps for that (`residual/slot_reuse.py`)."""

    @cached_property
    def linear(self) -> LinearMap | None:
        """The written value as a linear function of the residual stream, if it is one."""
        return None if self.as_linear is None else self.as_linear()

    @property
    def maps(self) -> tuple[LinearMap, ...]:
        """The maps with which the neurons read the residual stream."""
        return (self.read,)

    def with_maps(self, maps: Sequence[LinearMap], writes: tuple[tuple[Variable, Array], ...] | None = None) -> MLP:
        """The neurons with other matrices for reading and, if given, for writing."""
        (read,) = maps
        return MLP(self.label, read, writes or self.writes, self.what, self.as_linear, self.clears)

    @property
    def reads(self) -> tuple[Variable, ...]:
        """Every variable the neurons read."""
        return tuple(self.read.blocks)


@dataclass(frozen=True, eq=False)
class Units:
    """Neurons (`read`, with their biases) and what each writes; `noise` bounds the error of the result.

    `as_linear` gives the result as a linear function of the input, if it is one.
    """

    read: LinearMap
    write: Array
    noise: Noise
    as_linear: Callable[[], LinearMap] | None = None

    @property
    def count(self) -> int:
        """The number of neurons."""
        return self.read.width


class TooClose(Exception):
    """Two numbers that must be distinguished are closer than the error with which they are stored."""

    def __init__(self, below: float, above: float, error: float) -> None:
        self.below, self.above, self.error = below, above, error
        super().__init__(f"{below!r} and {above!r} are too close for an error of {error:.2g}")


def _bias(weights: Array) -> LinearMap:
    return LinearMap.of(ONE, weights[None, :])


def join(*parts: Units) -> Units:
    """Joins several groups of neurons that write the same directions."""
    read = parts[0].read
    for part in parts[1:]:
        read = read.beside(part.read)
    noise = Noise(sum(part.noise.error for part in parts), sum(part.noise.cold for part in parts))
    return Units(read, np.concatenate([part.write for part in parts]), noise)


def look_up(
    read: Callable[[Array], LinearMap],
    table: Array,
    noise: Noise,
    *,
    merge: bool,
    soft: bool = False,
    to: Format = FLOAT32,
) -> Units:
    """A table of a one-hot code: a neuron per value; with `merge`, a neuron per distinct row of the table except zero.

    `read(matrix)` is the map that reads the code and multiplies it with a matrix: most tables need far fewer columns
    than a square matrix has.

    relu(x_v) is 1 for the value of the variable and 0 for the others. If the code has a large error, two neurons per
    value, relu(2x - 1/2) - relu(2x - 3/2), give 1 for x within 1/4 of 1 and 0 for x within 1/4 of 0. With `soft` they
    are relu(x) - relu(x - 1), which is x between 0 and 1.

    In a short format of p bits the pair is exact too: x between 3/4 and 5/4 is a multiple of 2**-p, and 2x - 1/2 and
    2x - 3/2, multiples of 2**(1-p) below 2, need no rounding.
    """
    classes = np.arange(len(table))
    rows = table
    merge = merge and noise.cold == 0.0  # a class adds up the errors of its members
    if merge:
        first, classes = group_rows(table)
        rows = table[first]
    members = np.eye(len(rows))[classes]
    if merge:
        kept = rows.any(axis=1)
        rows, members = rows[kept], members[:, kept]
    scale = float(np.abs(rows).max(initial=0.0))
    if noise.error <= CLEAN and noise.cold == 0.0:
        error = noise.error * scale + _rounding(rows, to)
        return Units(read(members), rows, Noise(error=error), partial(read, table + 0.0))
    slope = 1 if soft else 2
    neurons = np.concatenate([slope * members, slope * members], axis=1)
    bias = np.repeat([(1 - slope) / 2, (-1 - slope) / 2], len(rows))
    error = _lookup_error(scale, rows, to)
    return Units(read(neurons) + _bias(bias), np.concatenate([rows, -rows]), Noise(error=error))


def look_up_bits(code: LinearMap, codebook: Array, table: Array, to: Format = FLOAT32) -> Units:
    """A table of a code x in bits: a neuron per value v, relu(c_v . x - (B - 1)).

    c_v . x is the number of bits that agree minus the number of bits that differ: B for the value of the variable, at
    most B - 2 for others, and 0 for x = 0 (BOS, PAD). Therefore the neuron is exactly 1 or 0: all terms are integers.

    In a table of 0, 1 and -1, one neuron writes the most common row at every token, and the neurons of other values
    write the difference to it. This sum is exact too.
    """
    first, classes = group_rows(table)
    base = table[first[np.bincount(classes).argmax()]]
    if not np.isin(table, (-1.0, 0.0, 1.0)).all():
        base = np.zeros_like(base)
    rows = table - base
    kept = rows.any(axis=1)
    rows = rows[kept]
    size = codebook.shape[1]
    read = code.then(codebook[kept].T) + _bias(np.full(len(rows), 1.0 - size))
    units = Units(read, rows, Noise(error=_rounding(rows, to)))
    return join(units, Units(present(), base[None, :], Noise())) if base.any() else units


def _lookup_error(scale: float, rows: Array, to: Format) -> float:
    """Error of a + b - c, where a and b are 1 or 0 times a number up to `scale`.

    This includes the errors of a neuron that clears the slot's earlier contents, up to 1, and of the addition to the
    slot (`residual/slot_reuse.py`). In a short format the neurons are exact, and only a row may be rounded.
    """
    return _rounding(rows, to) if to.short else max(4 * scale, 16.0) * U


def _rounding(rows: Array, to: Format) -> float:
    """The largest change of a number by rounding it to the format."""
    if to.short:
        return float(np.abs(to.nearest(rows) - rows).max(initial=0.0))
    return U * float((rows.astype(np.float32) != rows).any()) * float(np.abs(rows).max(initial=0.0))


def look_up_pairs(
    twice_fst: LinearMap,
    twice_snd: LinearMap,
    written: Array,
    noise: tuple[Noise, Noise],
    *,
    soft: bool = False,
    to: Format = FLOAT32,
) -> Units:
    """A table of two one-hot codes: a neuron per pair of classes.

    A neuron reads 2x and 2y, where x is 1 if the first variable is in the first class of the pair, and y is 1 if the
    second variable is in the second. relu(2x + 2y - 3) is 1 if both are, and otherwise 0, with a margin of 1. If a code
    has a large error, the neurons are relu(2x + 2y - 5/2) - relu(2x + 2y - 7/2). With `soft` they are relu(x + y - 1),
    and relu(x + y - 1) - relu(x + y - 2): the same for exact codes, and an error of a code is not doubled.
    """
    scale = float(np.abs(written).max(initial=0.0))
    both = twice_fst + twice_snd
    if soft:
        both = LinearMap({variable: block / 2 for variable, block in both.blocks.items()}, both.width)
    error = 2 * (noise[0].error + noise[1].error)
    if error <= CLEAN:
        read = both + _bias(np.full(both.width, -1.0 if soft else -3.0))
        return Units(read, written, Noise(error=error * scale + _rounding(written, to)))
    read = both.beside(both) + _bias(np.repeat([-1.0, -2.0] if soft else [-2.5, -3.5], both.width))
    return Units(read, np.concatenate([written, -written]), Noise(error=_lookup_error(scale, written, to)))


def _gate(read: NumberRead, neurons: LinearMap, ceiling: Array, bias: Array | None = None) -> LinearMap:
    """Neurons, with a bias if given, that are off at BOS and where the value is not a number.

    Elsewhere the gate adds 0, and nothing is rounded.
    """
    biased = {} if bias is None else {ONE: bias[None, :]}
    gated = neurons + LinearMap({**biased, BOS: -ceiling[None, :]}, neurons.width)
    missing = read.missing()
    return gated if missing is None else gated + missing.then(-ceiling[None, :])


def _constant(read: NumberRead, written: Array, to: Format = FLOAT32) -> Units:
    """A fixed row at every position that holds a number: one neuron, relu(1 - bos - none)."""
    source, missing = present(), read.missing()
    if missing is not None:
        source = source + missing.then(np.array([[-1.0]]))
    return Units(source, written[None, :], Noise(error=_rounding(written, to)))


def _others(read: NumberRead, rows: Others) -> list[Units]:
    """A fixed row for each value that is not a number; written at most once if several flags mark the same value."""
    flags: dict[Value, list[LinearMap]] = {}
    for value, flag in read.flags:
        if value in rows:
            flags.setdefault(value, []).append(flag)
    units = []
    for value, maps in flags.items():
        total, written = maps[0], rows[value][None, :]
        for flag in maps[1:]:
            total = total + flag
        units.append(Units(total, written, Noise()))
        if len(maps) > 1:  # min(1, total) = relu(total) - relu(total - 1)
            units.append(Units(total + _bias(np.array([-1.0])), -written, Noise()))
    return units


def _sum_error(weights: Array, largest: float, span: float) -> Array:
    """Error of the sums over neurons of weights [neuron, output] times hidden values.

    A hidden value is the difference of two numbers up to `largest`, each rounded, and is at most `span` itself. The
    error of a sum of k products up to P is that of the roundings of its partial sums; the sum is assumed to run in at
    least `LANES` lanes. One of the products may clear the slot's earlier contents, up to 1, to which the sum is added
    (`residual/slot_reuse.py`).
    """
    count = (weights != 0).sum(axis=0) + 1
    total = weights.sum(axis=0)
    return np.asarray(2 * U * total * largest + (7 + count / LANES) * U * (total * span + 1))


def staircase(read: NumberRead, points: Array, table: Array, others: Others, soft: float = 0.0) -> Units:
    """A function of a number with known values `points` (ascending): constant around each, a ramp in each gap.

    A step at t is relu(s(x-t) + 1/2) - relu(s(x-t) - 1/2): 0 below, 1 above, a ramp of width 1/s between. Neighbours
    with equal rows need no step. With s a power of two between 2/gap and 4/gap the plateaus reach at least gap/4 around
    every point; errors below that do not change the result.

    Exactness. Let x be a multiple of g, all steps have the same slope s <= 1/(2g), every t be a multiple of g, and
    |x - t| + 1/(2s) <= 2**23 g. Then every hidden value is a multiple of s*g and at most 2**23 s*g, and sums of two of
    them need at most 24 bits. Therefore a coordinate with at most two steps (one up by 1, one down) is exact on
    plateaus in float32, in any order of the sum. Otherwise hidden values are rounded, and errors of large ones do not
    cancel: see `_sum_error`.

    With `soft` the ramps are wider than the gaps: a step is this much above 0 at the point below it, and below 1 at the
    point above (at the far ends of what `read` may hold there, if that is a range). The function then has a slope
    everywhere near a point with a step beside it, and `noise` leaves this out. For a short format see `cell_staircase`.
    """
    (steps,) = (table[1:] != table[:-1]).any(axis=1).nonzero()
    below, above = points[steps], points[steps + 1]
    gaps = (above - below).tolist()
    for step, gap in enumerate(gaps):
        if 4 * read.noise.error >= gap:
            raise TooClose(float(below[step]), float(above[step]), read.noise.error)
    rises = table[steps + 1] - table[steps]
    middles = (below + above) / 2
    slopes = np.array([power_of_two_above(2 / gap) for gap in gaps])
    grid = read.noise.grid
    exact = False
    if grid and len(steps):
        common = float(slopes.max())
        grid = min(grid, 0.5 / common)
        span = max(read.high - middles.min(), middles.max() - read.low) + 0.5 / common
        if span / grid <= 2**23:
            sizes = np.abs(rises)
            exact = bool(((sizes == 0) | (sizes == 1)).all()) and int(sizes.sum(axis=0).max()) <= 2
            slopes = np.full(len(steps), common)
            middles = np.round(middles / grid) * grid
    noise = Noise()
    largest = read.largest + float(np.abs(points).max(initial=0.0))
    if len(steps) and not exact:
        span = read.high - read.low + float((1 / slopes).max())
        wobble = float(_sum_error(2 * np.abs(rises) * slopes[:, None], largest, span).max(initial=0.0))
        noise = Noise(error=wobble, cold=wobble)
    if soft:
        slopes, middles = (1 - 2 * soft) / (above - below + 2 * read.reach), (below + above) / 2
    twice = np.concatenate([slopes, slopes])
    centres = slopes * middles
    bias = np.concatenate([0.5 - centres, -0.5 - centres])
    hidden = _gate(read, read.number.then(twice[None, :]), twice * 2 * largest + 2, bias)
    parts = [Units(hidden, np.concatenate([rises, -rises]), noise)] if len(steps) else []
    if len(points) and (table[0].any() or not parts):
        parts.append(_constant(read, table[0]))
    return join(*parts, *_others(read, others))


def cell_staircase(read: NumberRead, points: Array, table: Array, others: Others, to: Format) -> Units:
    """A staircase for a short format: every ramp is one cell of the grid g of the number x, from m g to (m + 1) g.

    A step is relu(x/g - m) - relu(x/g - m - 1). Before it was rounded to the grid, x was within e of its point, and
    rounding is monotonic: if the point below a step is at most m g - e, x is at most m g, and the step is 0; if the
    point above is at least (m + 1) g + e, the step is 1. The same holds without rounding to the grid, in float32.

    Exactness. All hidden values are integers. With p bits and |x|, |x - m g| at most 2**p g, none is rounded, in any
    order and with the bias added before or after rounding. The products with the rows of the table are added up in
    float32. If all products are multiples of h and their sizes add up to at most 2**24 h, the sum is exact too.

    In float32 x has 24 bits. If it is not exact (e > 0), only coordinates with at most two steps, one up by 1 and one
    down, are exact there, as in `staircase`; other tables are refused.
    """
    (steps,) = (table[1:] != table[:-1]).any(axis=1).nonzero()
    unit, places = _cells(read, points[steps], points[steps + 1], to)
    rises = table[steps + 1] - table[steps]
    furthest = max(read.largest / unit, float(np.abs(places).max(initial=0.0)) + 1)
    span = max([furthest, *(read.high / unit - places), *(places + 1 - read.low / unit)])
    if len(steps) and (span > to.steps or not _adds_up(rises, span, to, exact=read.noise.error == 0.0)):
        raise TooClose(float(points[steps[0]]), float(points[steps[0] + 1]), unit * max(1.0, span / to.steps))
    scale = np.full(2 * len(steps), 1 / unit)
    bias = np.concatenate([-places, -places - 1])
    ceiling = np.full(2 * len(steps), power_of_two_above(2 * furthest + 2))
    hidden = _gate(read, read.number.then(scale[None, :]), ceiling, bias)
    parts = [Units(hidden, np.concatenate([rises, -rises]), Noise())] if len(steps) else []
    if len(points) and (table[0].any() or not parts):
        parts.append(_constant(read, table[0], to))
    return join(*parts, *_others(read, others))


def _cells(read: NumberRead, below: Array, above: Array, to: Format) -> tuple[float, Array]:
    """The width of a cell, and for each step the number m of a cell between the points below and above it."""
    grid, error = read.noise.grid, read.noise.error
    if len(below) and not grid:
        raise TooClose(float(below[0]), float(above[0]), max(error, to.roundoff * read.largest))
    unit = grid or 1.0
    first, last = np.ceil((below + error) / unit), np.floor((above - error) / unit)
    for step in np.flatnonzero(first + 1 > last).tolist()[:1]:
        raise TooClose(float(below[step]), float(above[step]), error + grid)
    return unit, np.floor((first + last) / 2)


def _adds_up(rises: Array, span: float, to: Format, *, exact: bool) -> bool:
    """Whether float32 adds up hidden values, integers up to `span`, times rises that the format holds.

    If the number is not exact in float32, a coordinate may have two steps of 1.
    """
    sizes = np.abs(rises)
    most = float(sizes.sum(axis=0).max(initial=0.0))
    if not exact and (most > 2 or not np.isin(sizes, (0.0, 1.0)).all()):
        return False
    quantum = dyadic_grid(rises.ravel().tolist()) or 2.0**-40
    return to.holds(rises) and 2 * span * most <= 2**24 * quantum


def interpolate(
    read: NumberRead, points: Array, numbers: Array, others: Others, width: int, to: Format = FLOAT32
) -> Units:
    """The piecewise linear function through (points, numbers), one neuron per change of slope.

    f(x) = f_0 + sum_i (slope_i - slope_{i-1}) relu(x - x_i). The steepest slope amplifies the input error, and rounding
    adds `_sum_error`. But on a grid (x and x_i multiples of g, changes of slope multiples of h) nothing is rounded if
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
    hidden = _gate(read, read.number.then(np.ones((1, len(places)))), np.full(len(places), 2 * largest + 1), -places)
    steepest = float(np.abs(slopes).max(initial=0.0))
    error = steepest * read.noise.error + 4 * U * float(np.abs(numbers).max(initial=0.0))
    error += float(_sum_error(np.abs(turns)[:, None], largest, read.high - read.low)[0])
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
        parts.append(_constant(read, first))
    return join(*parts, *_others(read, others))


def carry(read: NumberRead, constant: float, others: Others, width: int, to: Format = FLOAT32) -> Units:
    """The number itself plus a constant: relu(z) - relu(-z), and a gated neuron for the constant.

    A short format rounds z and the result, unless it holds the multiples of the grid up to their size.
    """
    write = np.zeros((2, width))
    write[:, 0] = [1.0, -1.0]
    pair = read.number.then(np.array([[1.0, -1.0]]))
    if read.flags:
        pair = _gate(read, pair, np.full(2, 2 * read.largest + 1))
    noise = read.noise
    if to.short and not (noise.grid and read.largest + abs(constant) <= to.steps * noise.grid):
        noise = Noise(noise.error + 2 * to.roundoff * (read.largest + abs(constant)))
    parts = [Units(pair, write, noise)]
    if constant:
        first = np.zeros(width)
        first[0] = constant
        parts.append(_constant(read, first, to))
    units = join(*parts, *_others(read, others))
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
        off = code.then(gate) + _bias(np.array([-reach]))
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
