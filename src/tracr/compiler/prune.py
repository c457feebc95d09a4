"""Dropping what nothing reads: directions, and neurons and values that only write those, from the outputs backwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.circuit import Circuit, Component
from tracr.craft.heads import Head
from tracr.craft.linear import LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Array, Variable

__all__ = ["prune"]

Read = dict[Variable, NDArray[np.bool_]]


def prune(circuit: Circuit) -> Circuit:
    """The same circuit without dead directions and components. Outputs keep all their directions."""
    written = [(variable, matrix.any(axis=0)) for part in circuit.components for variable, matrix in part.writes]
    zero: Read = {variable: ~taken for variable, taken in written if not taken.all()}
    read: Read = {}
    for linear in circuit.unembedded:
        _mark(read, linear)
    kept: list[Component] = []
    for component in reversed(circuit.components):
        trimmed = _trim(component, read, zero)
        if trimmed is not None:
            kept.append(trimmed)
            for linear in trimmed.maps:
                _mark(read, linear)
    return replace(circuit, components=tuple(reversed(kept)), read=read)


def _mark(read: Read, linear: LinearMap) -> None:
    for variable, block in linear.blocks.items():
        rows = block.any(axis=1)
        read[variable] = read[variable] | rows if variable in read else rows


def _trim(component: Component, read: Read, zero: Read) -> Component | None:
    """A component without the neurons (or values) that write nothing that is read; `None` if there are no others.

    What is always zero (the number 0, a value that is never taken) is not read.
    """
    writes: list[tuple[Variable, Array]] = [
        (variable, matrix if read[variable].all() else np.where(read[variable], matrix, 0.0))
        for variable, matrix in component.writes
        if variable in read
    ]
    used = np.zeros(component.maps[-1].width, dtype=bool)
    for _, matrix in writes:
        used |= matrix.any(axis=1)
    if not used.any():
        return None
    left = tuple(writes) if used.all() else tuple((variable, matrix[used]) for variable, matrix in writes)
    match component:
        case MLP():
            return replace(component, read=component.read.columns(used, zero), writes=left)
        case Head():
            everything = np.ones(component.query.width, dtype=bool)
            query, key = component.query.columns(everything, zero), component.key.columns(everything, zero)
            return replace(component, query=query, key=key, value=component.value.columns(used, zero), writes=left)
