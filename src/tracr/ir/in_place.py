"""Whether one MLP can clear a slot and write a new variable there: if 0 < as_new(new) <= as_old(old).

The proof is in `slot_reuse.py`.
"""

from __future__ import annotations

import numpy as np

from tracr.craft.numerics import U
from tracr.craft.variables import Variable

__all__ = ["as_new", "as_old", "is_rough"]

COVERS_ROUNDING = 16 * U  # an error bound from here on leaves room for two further roundings


def as_old(variable: Variable) -> int:
    """Which variables can overwrite this one: 0 none, 1 rough ones, 2 exact codes too."""
    if _largest(variable) > 1.0:
        return 0
    return 2 if _is_integer(variable) else 1


def as_new(variable: Variable, *, short: bool = False) -> int:
    """Which variables this one can overwrite: 0 none, 1 (it is rough) small ones, 2 (it is exact) small integers.

    In a `short` format the bounds leave no room for further roundings.
    """
    if is_rough(variable):
        return 1 if _largest(variable) <= 1.0 and not short else 0
    return 2 if _is_integer(variable) and not variable.numerical else 0


def is_rough(variable: Variable) -> bool:
    """Whether the error bound of a variable leaves room for further roundings."""
    return variable.noise.error >= COVERS_ROUNDING


def _is_integer(variable: Variable) -> bool:
    """Whether all stored numbers are exact integers."""
    if variable.codebook is not None and (variable.codebook != np.round(variable.codebook)).any():
        return False
    if not variable.numerical:
        return variable.noise.error == variable.noise.cold == 0.0
    return variable.noise.error == 0.0 and variable.noise.grid >= 1.0


def _largest(variable: Variable) -> float:
    number = max(abs(variable.low), abs(variable.high)) if variable.numerical else 1.0
    if variable.codebook is not None:
        number = float(np.abs(variable.codebook).max())
    return max(number, max(map(abs, variable.at_bos), default=0.0))
