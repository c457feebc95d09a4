"""The passes `assign`, `stack` and `merge_heads`: put components into layers.

Sub-layers alternate: attention 0, MLP 0, attention 1, ... Every component goes into the earliest sub-layer of its kind
after all its inputs. A sub-layer may hold any number of components, so this depth is optimal: by induction no schedule
can place a component earlier. Some components can be placed later at the same depth; `narrow.py` and `solve.py` choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from tracr.craft.heads import Head
from tracr.craft.linear import LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Variable
from tracr.errors import InternalError
from tracr.ir.circuit import Circuit, Frame, through_used
from tracr.ir.schedule import Layer, PlacedCircuit, Placement, Schedule

__all__ = ["assign_to_layers", "depth", "earliest", "in_sublayers", "merge_heads", "pattern", "stack", "with_layers"]

FRAME = tuple(one.name for one in fields(Frame))


def earliest(circuit: Circuit) -> list[int]:
    """The earliest sub-layer for every component."""
    written: dict[Variable, int] = {}
    times = []
    for component in circuit.components:
        parity = 0 if isinstance(component, Head) else 1
        time = max((written.get(variable, -1) for variable in component.reads), default=-1) + 1
        time += (time - parity) % 2
        times.append(time)
        for variable, _ in component.writes:
            written[variable] = time
    return times


def depth(circuit: Circuit) -> int:
    """The fewest layers that a circuit can be scheduled in."""
    return max(earliest(circuit), default=-1) // 2 + 1


def in_sublayers(circuit: Circuit, times: Sequence[int], status: str = "", fewest: int = 0) -> PlacedCircuit:
    """The circuit with each component in the given sub-layer, and the result of the search for these times."""
    for component, time in zip(circuit.components, times, strict=True):
        if time % 2 != (0 if isinstance(component, Head) else 1) or time < 0:
            raise InternalError(f"{component.label} cannot be in sub-layer {time}")
    return PlacedCircuit(circuit, Placement(tuple(times), status, fewest))


def assign_to_layers(circuit: Circuit) -> PlacedCircuit:
    """Every component in its earliest sub-layer."""
    return in_sublayers(circuit, earliest(circuit))


def stack(placed: PlacedCircuit) -> Schedule:
    """The layers with their components."""
    circuit, sublayers = placed.circuit, [components for _, components in placed.sublayers()]
    layers = []
    for attention, neurons in zip(sublayers[::2], sublayers[1::2], strict=True):
        heads = tuple(part for part in attention if isinstance(part, Head))
        layers.append(Layer(heads, tuple(part for part in neurons if isinstance(part, MLP))))
    around = {name: getattr(circuit, name) for name in FRAME}
    return Schedule(**around, layers=tuple(layers), placement=placed.placement, blurred={})


def merge_heads(schedule: Schedule) -> Schedule:
    """Merge the heads of a layer with the same queries and keys: one head reads and writes the values of all."""
    layers = []
    through, blurred = dict(schedule.through), dict(schedule.blurred)
    for layer in schedule.layers:
        groups = _groups(layer.heads)
        if len(groups) == len(layer.heads):  # no two heads have the same queries and keys
            layers.append(layer)
            continue
        merged = {_merged(group, through): group for group in groups}
        for head, group in merged.items():
            for variable in _read_by_some(group, schedule):
                blurred.setdefault(variable, head.label)
        layers.append(Layer(tuple(merged), layer.mlps))
    merged_schedule = with_layers(schedule, layers, through)
    return replace(merged_schedule, blurred=blurred) if blurred else merged_schedule


def with_layers(schedule: Schedule, layers: Iterable[Layer], through: Mapping[LinearMap, LinearMap]) -> Schedule:
    """The schedule with other layers, and with those entries of `through` that belong to their maps."""
    layers = tuple(layers)
    maps = (linear for layer in layers for part in layer.components for linear in part.maps)
    return replace(schedule, layers=layers, through=through_used(schedule.folded, through, maps))


def _groups(heads: Sequence[Head]) -> list[list[Head]]:
    """The heads grouped by their queries and keys."""
    if len(heads) < 2:
        return [[head] for head in heads]
    groups: dict[object, list[Head]] = {}
    patterns: dict[tuple[LinearMap, LinearMap], object] = {}  # mostly the same objects
    for head in heads:
        maps = head.query, head.key
        if maps not in patterns:
            patterns[maps] = pattern(head)
        groups.setdefault(patterns[maps], []).append(head)
    return list(groups.values())


def pattern(head: Head) -> object:
    """Equal for heads with the same queries and keys."""
    return _fingerprint(head.query), _fingerprint(head.key)


def _fingerprint(linear: LinearMap) -> object:
    return frozenset((variable, block.tobytes()) for variable, block in linear.blocks.items())


def _merged(group: list[Head], through: dict[LinearMap, LinearMap]) -> Head:
    """One head with the values of all; the matrices with which it reads folded variables are added to `through`."""
    first = group[0]
    if len(group) == 1:
        return first
    value, folded = first.value, _folded(through, first.value)
    for head in group[1:]:
        value, folded = value.beside(head.value), folded.beside(_folded(through, head.value))
    through[value] = folded
    writes, start = [], 0
    for head in group:
        for variable, matrix in head.writes:
            padded = np.zeros((value.width, variable.size))
            padded[start : start + head.value.width] = matrix
            writes.append((variable, padded))
        start += head.value.width
    label, what = ", ".join(head.label for head in group), "; ".join(head.what for head in group)
    return replace(first, label=label, value=value, writes=tuple(writes), what=what)


def _folded(through: dict[LinearMap, LinearMap], linear: LinearMap) -> LinearMap:
    return through.get(linear) or LinearMap({}, linear.width)


def _read_by_some(group: list[Head], schedule: Schedule) -> tuple[Variable, ...]:
    """The folded variables that heads with the same queries and keys do not all read in the same way."""
    found: dict[Variable, None] = {}
    for side in ("query", "key"):
        maps = [schedule.folded_in(getattr(head, side)).blocks for head in group]
        for variable in dict.fromkeys(variable for own in maps for variable in own):
            blocks = [own[variable] for own in maps if variable in own]
            if len(blocks) < len(maps) or any((block != blocks[0]).any() for block in blocks):
                found[variable] = None
    return tuple(found)
