"""Whether one MLP can clear a variable's slot and write another there: if 0 < as_new(other) <= as_old(it).

`slot_reuse.py` says why.
"""

from __future__ import annotations

import numpy as np

from tracr.craft.numerics import U
from tracr.craft.variables import Variable

__all__ = ["as_new", "as_old", "is_rough"]

COVERS_ROUNDING = 16 * U  # an error bound from here on leaves room for two further roundings


def as_old(variable: Variable) -> int:
    """By what a variable can be overwritten: 0 nothing, 1 what is rough, 2 exact codes too."""
    if _largest(variable) > 1.0:
        return 0
    return 2 if _is_integer(variable) else 1


def as_new(variable: Variable) -> int:
    """What a variable can overwrite: 0 nothing, 1 (it is rough) whatever is small, 2 (it is exact) small integers."""
    if is_rough(variable):
        return 1 if _largest(variable) <= 1.0 else 0
    return 2 if _is_integer(variable) and not variable.numerical else 0


def is_rough(variable: Variable) -> bool:
    """Whether a variable's own error covers further roundings."""
    return variable.noise.error >= COVERS_ROUNDING


def _is_integer(variable: Variable) -> bool:
    """Whether what is stored are integers, exactly."""
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
