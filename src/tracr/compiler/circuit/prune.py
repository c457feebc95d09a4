"""The pass `prune`: drops unread directions, and the neurons and values that write only those.

It works from the outputs backwards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import LinearMap
from tracr.craft.variables import Array, Variable
from tracr.ir.circuit import Circuit, Component, through_used

__all__ = ["prune"]

Read = dict[Variable, NDArray[np.bool_]]
Maps = dict[LinearMap, LinearMap]


def prune(circuit: Circuit) -> Circuit:
    """The circuit without unread directions and components. Outputs keep all their directions."""
    zero: Read = {}
    for component in circuit.components:
        for variable, matrix in component.writes:
            taken = np.asarray(matrix.any(axis=0))
            if np.count_nonzero(taken) < len(taken):
                zero[variable] = ~taken
    read: Read = {}
    for linear in circuit.unembedded:
        _reading(linear, None, {}, read)
    known: Maps = {}
    through = dict(circuit.through)
    kept = [_trim(component, read, zero, known, through) for component in reversed(circuit.components)]
    components = tuple(part for part in reversed(kept) if part is not None)
    used = through_used(circuit.folded, through, (linear for part in components for linear in part.maps))
    return replace(circuit, components=components, read=read, through=used)


def _reading(linear: LinearMap, used: NDArray[np.bool_] | None, zero: Read, read: Read) -> LinearMap:
    """The map restricted to the outputs that are used and the directions they depend on, which are noted in `read`.

    Directions that are always zero (the number 0, a value that is never taken) are not read.
    """
    cut = linear if used is None else linear.columns(used)
    blocks = {}
    for variable, block in cut.blocks.items():
        if variable in zero:
            block = np.where(zero[variable][:, None], 0.0, block)
        rows = np.asarray(block.any(axis=1))
        if np.count_nonzero(rows):
            blocks[variable] = block
            read[variable] = read[variable] | rows if variable in read else rows
    return LinearMap(blocks, cut.width)


def _trim(component: Component, read: Read, zero: Read, known: Maps, through: Maps) -> Component | None:
    """A component without the neurons (or values) that write only unread directions; `None` if none is left.

    Queries and keys shared by several heads are `known` after the first. The matrices with which the maps read folded
    variables are added to `through`.
    """
    writes: list[tuple[Variable, Array]] = [
        (
            variable,
            matrix if np.count_nonzero(read[variable]) == variable.size else np.where(read[variable], matrix, 0.0),
        )
        for variable, matrix in component.writes
        if variable in read
    ]
    writing = np.zeros(component.maps[-1].width, dtype=bool)
    for _, matrix in writes:
        writing |= matrix.any(axis=1)
    count = np.count_nonzero(writing)
    if not count:
        return None
    used = None if count == len(writing) else writing
    if used is not None:
        writes = [(variable, matrix[used]) for variable, matrix in writes]
    *attending, carrying = component.maps
    for linear in attending:
        if linear not in known:
            known[linear] = _reading(linear, None, zero, read)
            if linear in through:
                through[known[linear]] = through[linear].nonzero()
    carried = _reading(carrying, used, zero, read)
    if carrying in through:
        through[carried] = through[carrying].nonzero() if used is None else through[carrying].columns(used)
    maps = [*(known[linear] for linear in attending), carried]
    return component.with_maps(maps, tuple(writes))
