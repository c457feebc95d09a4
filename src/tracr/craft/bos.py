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
    held = {variable: code for variable in linear.blocks if (code := _at_bos(variable)) is not None}
    if not held:
        return linear
    terms = [code[:, None] * linear.blocks[variable] for variable, code in held.items()]
    sizes = sum((np.abs(part).sum(axis=0) for part in terms), np.zeros(linear.width))
    total = sum((part.sum(axis=0) for part in terms), np.zeros(linear.width))
    columns = np.flatnonzero((sizes > 0) & (np.abs(total) <= CANCELLED * sizes)).tolist()
    blocks = {**linear.blocks, **{variable: linear.blocks[variable].copy() for variable in held}}
    for column in columns:
        _cancel(blocks, held, column, power_of_two_above(float(sizes[column])) * U)
    return LinearMap(blocks, linear.width)


def _at_bos(variable: Variable) -> Array | None:
    """The code of a variable at BOS; `None` if it is 0."""
    if variable in (BOS, ONE):
        return np.ones(1)
    return variable.bos_code() if any(variable.at_bos) else None


def _cancel(blocks: dict[Variable, Array], held: dict[Variable, Array], column: int, quantum: float) -> None:
    """Round the weights of one column, unless a weight would change by more than `FINENESS`."""
    rounded: dict[Variable, Array] = {}
    total = 0.0
    for variable, code in held.items():
        if variable is BOS:
            continue
        weights, there = blocks[variable][:, column], code != 0
        steps = quantum / low_bits(code[there])
        close = np.round(weights[there] / steps) * steps
        if (np.abs(close - weights[there]) > FINENESS * np.abs(weights[there])).any():
            return
        rounded[variable] = np.where(there, 0.0, weights)
        rounded[variable][there] = close
        total += float(code[there] @ close)
    for variable, weights in rounded.items():
        blocks[variable][:, column] = weights
    if BOS in blocks:
        blocks[BOS][0, column] = -total
