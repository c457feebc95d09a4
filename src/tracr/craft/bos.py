"""Reading nothing at BOS, to the last bit.

A head that adds up weighs BOS up to 2**34 times as much as a key (`heads.py`), and what it reads there must be 0, not
nearly 0. What is read is the sum of a constant, of the weight of the BOS direction, and of what variables hold at BOS
times their weights. In exact arithmetic it cancels; but 1/10, 9/10 and -1 do not cancel in float32.

So these terms are rounded to multiples of q = 2**-24 s, where s is a power of two and the sum of their sizes is at most
s. Then float32 holds all of them and all of their sums, in any order, and the weight of BOS is what is left. A weight
is off by q/2 at most, as much as float32 rounds the sum of the terms.
"""

from __future__ import annotations

import numpy as np

from tracr.craft.linear import BOS, ONE, LinearMap
from tracr.craft.numerics import U, low_bits, power_of_two_above
from tracr.craft.variables import Array, Variable
from tracr.nearness import CANCELLED

__all__ = ["cancelling_at_bos"]

FINENESS = 2.0**-20  # a weight may be rounded to multiples of this part of it


def cancelling_at_bos(linear: LinearMap) -> LinearMap:
    """The map with its constants rounded so that columns which should read 0 at BOS do, in float32 and in any order."""
    held = {variable: _at_bos(variable) for variable in linear.blocks}
    terms = {variable: held[variable][:, None] * block for variable, block in linear.blocks.items()}
    sizes = sum((np.abs(part).sum(axis=0) for part in terms.values()), np.zeros(linear.width))
    total = sum((part.sum(axis=0) for part in terms.values()), np.zeros(linear.width))
    blocks = {variable: block.copy() for variable, block in linear.blocks.items()}
    for column in np.flatnonzero((sizes > 0) & (np.abs(total) <= CANCELLED * sizes)).tolist():
        _cancel(blocks, held, column, power_of_two_above(float(sizes[column])) * U)
    return LinearMap(blocks, linear.width)


def _at_bos(variable: Variable) -> Array:
    return np.ones(1) if variable in (BOS, ONE) else variable.bos_code()


def _cancel(blocks: dict[Variable, Array], held: dict[Variable, Array], column: int, quantum: float) -> None:
    """Round the weights of one column, unless some of them have to be rounded too much for that."""
    rounded: dict[Variable, Array] = {}
    total = 0.0
    for variable, block in blocks.items():
        weights, there = block[:, column], held[variable] != 0
        if variable is BOS or not there.any():
            continue
        steps = quantum / low_bits(held[variable][there])
        close = np.round(weights[there] / steps) * steps
        if (np.abs(close - weights[there]) > FINENESS * np.abs(weights[there])).any():
            return
        rounded[variable] = np.where(there, 0.0, weights)
        rounded[variable][there] = close
        total += float(held[variable][there] @ close)
    for variable, weights in rounded.items():
        blocks[variable][:, column] = weights
    if BOS in blocks:
        blocks[BOS][0, column] = -total
