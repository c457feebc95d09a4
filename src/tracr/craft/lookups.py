"""Tables of codes: lookups of one-hot codes, of bits and of pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tracr.craft.formats import FLOAT32, Format
from tracr.craft.gates import bias_of, rounding
from tracr.craft.grouping import group_rows
from tracr.craft.linear import LinearMap, present
from tracr.craft.mlps import Units, join
from tracr.craft.numerics import CLEAN, Noise, U
from tracr.craft.variables import Array

__all__ = ["look_up", "look_up_bits", "look_up_pairs"]


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
        error = noise.error * scale + rounding(rows, to)
        return Units(read(members), rows, Noise(error=error), partial(read, table + 0.0))
    slope = 1 if soft else 2
    neurons = np.concatenate([slope * members, slope * members], axis=1)
    bias = np.repeat([(1 - slope) / 2, (-1 - slope) / 2], len(rows))
    error = _lookup_error(scale, rows, to)
    return Units(read(neurons) + bias_of(bias), np.concatenate([rows, -rows]), Noise(error=error))


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
    read = code.then(codebook[kept].T) + bias_of(np.full(len(rows), 1.0 - size))
    units = Units(read, rows, Noise(error=rounding(rows, to)))
    return join(units, Units(present(), base[None, :], Noise())) if base.any() else units


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
        read = both + bias_of(np.full(both.width, -1.0 if soft else -3.0))
        return Units(read, written, Noise(error=error * scale + rounding(written, to)))
    read = both.beside(both) + bias_of(np.repeat([-1.0, -2.0] if soft else [-2.5, -3.5], both.width))
    return Units(read, np.concatenate([written, -written]), Noise(error=_lookup_error(scale, written, to)))


def _lookup_error(scale: float, rows: Array, to: Format) -> float:
    """Error of a + b - c, where a and b are 1 or 0 times a number up to `scale`.

    This includes the errors of a neuron that clears the slot's earlier contents, up to 1, and of the addition to the
    slot (`residual/slot_reuse.py`). In a short format the neurons are exact, and only a row may be rounded.
    """
    return rounding(rows, to) if to.short else max(4 * scale, 16.0) * U
