"""Reads a variable from a stream in which variables share dimensions, as in superposed models.

Direction j, written with size x_j, is read as x_j G_ji along direction i: reading one variable also reads a part of the
others. Let v be the variable, and R(a) = code(a) G the coordinates of its value a alone. The others add at most a box:
for each other variable in the stream, the smallest and the largest that one of its codes adds to a coordinate. A value
is possible if the coordinates lie in R(a) plus the box. It is read if it is the only one possible. The box is larger
than what the others really add, because it combines any values of them: a value that is read is right wherever each
variable holds a code of one of its values, up to `ERROR`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import NUMBER, Variable
from tracr.errors import InputError
from tracr.ir.domains import Finite
from tracr.ir.layout import Direction

if TYPE_CHECKING:
    from tracr.model.reading import HeldVariable

__all__ = ["possible_values"]

Array = NDArray[Any]
ERROR = 0.02  # the error of a coordinate that is allowed on top


def possible_values(
    held: HeldVariable, coordinates: Array, gram: Array, directions: Iterable[Direction], time: int
) -> NDArray[np.bool_]:
    """Whether each value is possible for each row of coordinates, [row, value]."""
    if not isinstance(held.domain, Finite):
        raise InputError(
            f"{held.label} can be any number, and shares its dimensions with other variables",
            hint="read it in the compiled model",
        )
    slots = list(held.slots)
    others: dict[Variable, list[Direction]] = {}
    for one in directions:
        if one.held(time) and one.variable is not held.variable:
            others.setdefault(one.variable, []).append(one)
    low, high = np.full(len(slots), -ERROR), np.full(len(slots), ERROR)
    for variable, there in others.items():
        least, most = _added(variable, there, gram[:, slots])
        low, high = low + least, high + most
    alone = held.codes @ gram[np.ix_(slots, slots)]
    off = coordinates[:, None] - alone
    return np.asarray(((off >= low) & (off <= high)).all(axis=2))


def _added(variable: Variable, there: list[Direction], read: Array) -> tuple[Array, Array]:
    """The smallest and the largest that a code of a variable adds to each coordinate, at positions of tokens."""
    rows = read[[one.slot for one in there]]
    if variable in (ONE, BOS, PAD):
        constant = rows[0] * float(variable is ONE)
        return constant, constant
    if variable.numerical or variable.scratch:
        ends = np.array([(variable.low, variable.high) if one.value is NUMBER else (0.0, 1.0) for one in there])
        both = ends[:, :, None] * rows[:, None]
        return both.min(axis=1).sum(axis=0), both.max(axis=1).sum(axis=0)
    codes = np.eye(variable.size) if variable.codebook is None else variable.codebook
    added = codes[:, [one.place for one in there]] @ rows
    return added.min(axis=0), added.max(axis=0)
