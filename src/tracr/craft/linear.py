"""Linear maps that read the residual stream, with one matrix (block) for each variable they read."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.craft.formats import FLOAT32, Format
from tracr.craft.numerics import Noise, dyadic_grid, low_bits, power_of_two_above
from tracr.craft.variables import NUMBER, Array, Number, Variable
from tracr.rasp.annotations import Encoding
from tracr.values import Value, is_number

__all__ = [
    "BOS",
    "ONE",
    "PAD",
    "LinearMap",
    "NumberRead",
    "linear_combination",
    "present",
    "read_bits",
    "read_code",
    "read_flag",
    "read_number",
    "read_through",
]

ONE = Variable("one", Encoding.NUMERICAL, (NUMBER,))
"""1 at every position; its weights are the biases."""
BOS = Variable("tokens:bos", Encoding.NUMERICAL, (NUMBER,))
"""1 at the BOS position only."""
PAD = Variable("tokens:pad", Encoding.NUMERICAL, (NUMBER,))
"""1 at PAD positions only."""


Blocks = Mapping[Variable, Array]
Flags = tuple[tuple[Value, "LinearMap"], ...]
WORTH_LOOKING = 16  # with at least this many rows, testing a block for the identity saves time


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x -> the sum over variables v of x[v] @ blocks[v]."""

    blocks: Blocks
    width: int

    @property
    def nbytes(self) -> int:
        """The memory of the matrices in bytes."""
        return sum(block.nbytes for block in self.blocks.values())

    @staticmethod
    def of(variable: Variable, matrix: Array) -> LinearMap:
        """A map that reads one variable."""
        return LinearMap({variable: matrix}, matrix.shape[1])

    def then(self, matrix: Array) -> LinearMap:
        """This map followed by a matrix."""
        return LinearMap({variable: _times(block, matrix) for variable, block in self.blocks.items()}, matrix.shape[1])

    def __add__(self, other: LinearMap) -> LinearMap:
        return LinearMap(_sum(self.blocks, other.blocks), self.width)

    def columns(self, used: NDArray[np.bool_]) -> LinearMap:
        """The map to these outputs only, without the variables that they do not depend on."""
        return self.take(np.flatnonzero(used)).nonzero()

    def nonzero(self) -> LinearMap:
        """The map without the variables whose weights are all 0."""
        return LinearMap({variable: block for variable, block in self.blocks.items() if block.any()}, self.width)

    def take(self, places: NDArray[np.integer]) -> LinearMap:
        """The outputs with these indices; an index may occur several times."""
        return LinearMap({variable: block[:, places] for variable, block in self.blocks.items()}, len(places))

    def beside(self, other: LinearMap) -> LinearMap:
        """Both outputs, one after the other."""
        start, width = self.width, self.width + other.width
        return LinearMap(_side_by_side(self.blocks, other.blocks, start, width), width)


def _side_by_side(first: Blocks, second: Blocks, start: int, width: int) -> Blocks:
    found: dict[Variable, Array] = {}
    for blocks, columns in ((first, slice(start)), (second, slice(start, width))):
        for variable, block in blocks.items():
            if variable not in found:
                found[variable] = np.zeros((len(block), width))
            part = found[variable][:, columns]
            part += block
    return found


def _sum(first: Blocks, second: Blocks) -> Blocks:
    total = dict(first)
    for variable, block in second.items():
        total[variable] = total[variable] + block if variable in total else block
    return total


def _times(block: Array, matrix: Array) -> Array:
    """`block @ matrix`. Most codes are read by an identity: for a large block a test is faster than the product."""
    rows, columns = block.shape
    if rows == columns > WORTH_LOOKING and np.count_nonzero(block) == rows and (block.diagonal() == 1).all():
        return matrix + 0.0  # as in a product, no zero is negative
    product: Array = block @ matrix
    return product


def _row(variable: Variable, *weights: float) -> LinearMap:
    return LinearMap.of(variable, np.array([weights], dtype=np.float64))


@functools.cache
def present() -> LinearMap:
    """1 at every position but BOS."""
    return _row(ONE, 1.0) + _row(BOS, -1.0)


def read_code(variable: Variable) -> LinearMap:
    """Reads the code of a variable, and zero at BOS.

    The contents of the BOS position are known (a head's default, for example). A multiple of the BOS direction cancels
    them, and no reader sees a code there.
    """
    return read_through(variable, np.eye(variable.size))


def read_through(variable: Variable, matrix: Array) -> LinearMap:
    """`read_code`, followed by a matrix."""
    plain = LinearMap.of(variable, matrix + 0.0)  # as in a product, no zero is negative
    if not any(variable.at_bos):
        return plain
    return plain + LinearMap.of(BOS, _times(-variable.bos_code()[None, :], matrix))


@dataclass(frozen=True, eq=False)
class NumberRead:
    """A number read linearly (0 at BOS and for values that are not numbers), with its error, grid and range.

    `flags` are the values that are not numbers (`None`, or a default), each with a map that is 1 if the variable has
    that value. `spread` is the sum of the sizes of all partial sums of the reading, relative to the largest number. In
    a softened model the number may be `reach` below and above the values that its reader knows.
    """

    number: LinearMap
    flags: tuple[tuple[Value, LinearMap], ...]
    noise: Noise
    low: float
    high: float
    spread: float = 1.0
    reach: float = 0.0

    @property
    def largest(self) -> float:
        """The largest absolute value of the number."""
        return max(abs(self.low), abs(self.high))

    def missing(self) -> LinearMap | None:
        """A map that is 1 where the value is not a number; `None` if it always is one."""
        total: LinearMap | None = None
        for _, flag in self.flags:
            total = flag if total is None else total + flag
        return total


def read_flag(variable: Variable, value: Value) -> LinearMap:
    """A map that is 1 where the variable is `value`; the value must have a direction of its own."""
    column = np.zeros((variable.size, 1))
    column[variable.index[value]] = 1.0
    return read_through(variable, column)


def read_number(variable: Variable, to: Format = FLOAT32) -> NumberRead:
    """Reads the number in a variable; from a one-hot code, with the value of each direction as its weight."""
    listed = [1.0 if value is NUMBER else float(value) if is_number(value) else 0.0 for value in variable.values]
    flags = tuple(
        (value, read_flag(variable, value))
        for value in variable.values
        if not isinstance(value, Number) and not is_number(value)
    )
    if variable.numerical:
        number = read_through(variable, np.array(listed)[:, None])
        return NumberRead(number, flags, variable.noise, variable.low, variable.high)
    return _from_code(variable, listed, flags, to)


def _from_code(variable: Variable, listed: list[float], flags: Flags, to: Format) -> NumberRead:
    """Reads a number from a one-hot code; `listed` are the numbers of its values."""
    weights: Array = np.array(listed)[:, None]
    noise, low, high = variable.noise, min(listed), max(listed)
    grid = dyadic_grid(listed, to)
    clean = noise.error == 0.0 and noise.cold == 0.0
    if to.short and clean and not grid and not flags:
        return _quantised(variable, weights, to)
    exact = clean and grid > 0.0
    rounded = noise.error + to.roundoff
    error = 0.0 if exact else max(-low, high) * rounded + float(np.abs(weights).sum()) * noise.cold
    if flags:  # their error is that of the code
        error = max(error, noise.error, noise.cold)
    noise = Noise(error=error, grid=grid if exact else 0.0)
    return NumberRead(read_through(variable, weights), flags, noise, low, high)


def _quantised(variable: Variable, weights: Array, to: Format) -> NumberRead:
    """Reads a number from a one-hot code, rounded to a grid; the format holds its multiples up to twice the number."""
    grid = power_of_two_above(2 * float(np.abs(weights).max()) / to.steps)
    rounded = np.round(weights / grid) * grid
    noise = Noise(error=float(np.abs(rounded - weights).max()), grid=grid)
    return NumberRead(read_through(variable, rounded), (), noise, float(weights.min()), float(weights.max()))


def read_bits(variable: Variable, numbers: NDArray[np.integer], to: Format = FLOAT32) -> NumberRead | None:
    """Reads the number of a code in bits, if the value numbered k is a + s k, as in a vocabulary of integers.

    k is the sum of 2^i (1 - b_i) / 2; therefore the number is linear in the bits. If all terms are multiples of g, and
    the sum T of their sizes is less than 2^20 g, nothing is rounded. T must be at most 4 times the largest number: this
    preserves the margins of readers.
    """
    assert variable.codebook is not None
    if not all(is_number(value) for value in variable.values):
        return None
    values = np.array([float(value) for value in variable.values if is_number(value)])
    step = float((values[-1] - values[0]) / (numbers[-1] - numbers[0]))
    if (values - values[0] != step * (numbers - numbers[0])).any():
        return None
    weights: Array = np.array([-step / 2 * 2.0**place for place in range(variable.size)])
    constant = float(values[0] - step * numbers[0] - weights.sum())
    total, largest = float(np.abs(weights).sum()) + abs(constant), float(np.abs(values).max())
    held = values.tolist() if to.short else ()
    grid = dyadic_grid([*weights.tolist(), constant, *held], to)
    if not grid or total >= 2**20 * grid or total > 4 * largest:
        return None
    number = read_through(variable, weights[:, None]) + present().then(np.array([[constant]]))
    spread = total / largest * (variable.size + 1)
    return NumberRead(number, (), Noise(grid=grid), float(values.min()), float(values.max()), spread)


def linear_combination(
    terms: list[tuple[NumberRead, float]], constant: float = 0.0, to: Format = FLOAT32
) -> NumberRead:
    """Reads a weighted sum of numbers linearly; the result is not a number where one of them is not a number.

    Large terms may cancel: rounding depends on the size of the terms, not of their sum. Sums are exact in float32 if
    all terms are multiples of a grid; a short format must also hold the terms, which may be weights.
    """
    number = LinearMap({}, 1)
    flags: list[tuple[Value, LinearMap]] = []
    error = low = high = 0.0
    reach = rounded = abs(constant)
    grid = math.inf
    for read, factor in terms:
        number = number + read.number.then(np.array([[factor]]))
        flags += read.flags
        ends = sorted((factor * read.low, factor * read.high))
        low, high = low + ends[0], high + ends[1]
        error += max(abs(factor), float(bool(read.flags))) * read.noise.error  # flags are read with any factor
        reach += abs(factor) * read.largest
        rounded += abs(factor) * read.largest * read.spread
        step = read.noise.grid
        exact = step > 0 and read.noise.error == 0.0 and float(factor).is_integer()
        if to.short:  # an error before the rounding to the grid does no harm
            step *= float(low_bits(factor)) if factor else 1.0
            exact = step > 0 and abs(factor) * read.largest <= to.steps * step
        grid = min(grid, step) if exact else 0.0
    if not (grid and reach / grid < 2**22):
        grid, error = 0.0, error + 4 * to.roundoff * rounded
    return NumberRead(number, tuple(flags), Noise(error, 0.0, grid), low, high)
