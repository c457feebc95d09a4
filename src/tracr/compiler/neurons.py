"""Sharing neurons, the pass `share_neurons`: neurons of a layer that read the same become one, which writes for all.

Steps at the same place of the same number (`x == 0` and `x < 0`) have kinks in common. A neuron that reads 2^k times
what another reads holds 2^k times its value, so it is left out and the other writes 2^k times its weights too: nothing
is rounded. A variable that was folded counts as read, so that it can be set for its readers alone.

Groups of neurons that share some become one group, as the parts of a model are told apart by their neurons; a neuron
that reads nothing but whether there is a token is no reason to.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracr.compiler.schedule import Layer, Schedule
from tracr.craft.linear import BOS, ONE
from tracr.craft.mlps import MLP
from tracr.craft.variables import Array, Variable

__all__ = ["share_neurons"]

Key = tuple[tuple[int, bytes], ...]
MANY = 4096  # neurons of a table, which has none to share


def share_neurons(schedule: Schedule) -> Schedule:
    """The same schedule with a neuron for each thing that is read."""
    return replace(schedule, layers=tuple(Layer(layer.heads, _shared(layer.mlps)) for layer in schedule.layers))


def _shared(mlps: tuple[MLP, ...]) -> tuple[MLP, ...]:
    """The groups of neurons of a layer, those that have some in common as one."""
    groups: list[list[MLP]] = []
    held: list[set[Key]] = []
    for part in mlps:
        own = {key for key, _, kink in _keys(part) if kink}
        touching = [place for place, keys in enumerate(held) if keys & own]
        merged = [other for place in touching for other in groups[place]]
        keys = own.union(*(held[place] for place in touching))
        if touching:
            first = touching[0]
            groups[first], held[first] = [*merged, part], keys
            for place in reversed(touching[1:]):
                del groups[place], held[place]
        else:
            groups.append([part])
            held.append(keys)
    return tuple(_merged(group) for group in groups)


def _keys(part: MLP) -> list[tuple[Key, float, bool]]:
    """For each neuron what it reads, up to a power of two; that power; and whether it depends on anything."""
    blocks = [*part.read.blocks.items(), *part.read.through.items()]
    if not blocks or part.read.width > MANY:
        return []
    largest = np.max([np.abs(block).max(axis=0) for block in part.read.blocks.values()], axis=0)
    scales = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0))))
    found = []
    for neuron, scale in enumerate(scales.tolist()):
        columns = [(variable, block[:, neuron] / scale + 0.0) for variable, block in blocks if block[:, neuron].any()]
        key = tuple(sorted((id(variable), column.tobytes()) for variable, column in columns))
        found.append((key, scale, any(variable not in (ONE, BOS) for variable, _ in columns)))
    return found


def _merged(group: list[MLP]) -> MLP:
    """One group of neurons with the writes of all."""
    first = group[0]
    if not _keys(first):
        return first
    read = first.read
    for part in group[1:]:
        read = read.beside(part.read)
    places: dict[Key, tuple[int, float]] = {}
    kept: list[int] = []
    writes: dict[Variable, Array] = {
        variable: np.zeros((read.width, variable.size)) for part in group for variable, _ in part.writes
    }
    start = 0
    for part in group:
        for neuron, (key, scale, _) in enumerate(_keys(part)):
            rows = {variable: matrix[neuron] for variable, matrix in part.writes}
            place, unit = places.setdefault(key, (start + neuron, scale))
            added = {variable: writes[variable][place] + scale / unit * row for variable, row in rows.items()}
            if place != start + neuron and not all(map(_held, added.values())):
                place, added = start + neuron, rows
            if place == start + neuron:
                kept.append(place)
            for variable, row in added.items():
                writes[variable][place] = row
        start += part.read.width
    if len(kept) == read.width and len(group) == 1:
        return first
    chosen = np.zeros(read.width, dtype=bool)
    chosen[kept] = True
    return replace(
        first,
        label=", ".join(part.label for part in group),
        read=read.columns(chosen, set()),
        writes=tuple((variable, matrix[chosen]) for variable, matrix in writes.items()),
        what="; ".join(part.what for part in group),
        linear=None,
    )


def _held(row: Array) -> bool:
    """Whether float32 holds the numbers exactly."""
    return bool((row.astype(np.float32) == row).all())
