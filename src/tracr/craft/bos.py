"""Rounds weights such that heads read exactly 0 at BOS.

A head that computes a sum gives BOS up to 2**34 times the weight of a key (`heads.py`). Therefore the value it reads at
BOS must be exactly 0. This value is a constant, plus the weight of the BOS direction, plus the contents of variables at
BOS times their weights. In exact arithmetic these terms cancel; but 1/10, 9/10 and -1 do not cancel in float32.

This module rounds the terms to multiples of q = 2**-24 s, where s is a power of two and the sum of the terms' absolute
values is at most s. Then float32 holds all terms and all their sums, in any order. The weight of the BOS direction is
set to minus the sum of the others. A weight changes by at most q/2, which is also float32's rounding of the sum.
"""

from __future__ import annotations

import numpy as np

from tracr.craft.linear import BOS, ONE, LinearMap
from tracr.craft.numerics import U, low_bits, power_of_two_above
from tracr.craft.variables import Array, Variable
from tracr.nearness import CANCELLED

__all__ = ["cancelling_at_bos"]

FINENESS = 2.0**-20  # the largest relative change of a weight by rounding


def cancelling_at_bos(linear: LinearMap) -> LinearMap:
    """The map with rounded constants: columns that should read 0 at BOS read 0 in float32, in any order of the sum."""
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
    """Round the weights of one column, unless a weight would change by more than `FINENESS`."""
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
