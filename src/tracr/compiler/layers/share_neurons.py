"""The pass `share_neurons`: merges the neurons of a layer that have the same input weights, up to a power of two.

Steps at the same point of the same number (`x == 0` and `x < 0`) have common kinks. A neuron with 2^k times the input
weights of another holds 2^k times its value. It is removed, and the other neuron also writes its output weights, times
2^k: nothing is rounded. Weights for folded variables are compared too, because a folded variable can be set for some of
its readers only.

Groups that share neurons become one group, because the components of a model are identified by their neurons. Neurons
that only detect whether there is a token do not merge groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracr.compiler.layers.assign import with_layers
from tracr.craft.formats import Format
from tracr.craft.linear import BOS, ONE, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Array, Variable
from tracr.ir.schedule import Layer, Schedule

__all__ = ["share_neurons"]


def share_neurons(schedule: Schedule) -> Schedule:
    """The schedule with one neuron in place of several with the same input weights."""
    through = dict(schedule.through)
    to = schedule.options.format
    layers = [Layer(layer.heads, _shared(layer.mlps, through, to)) for layer in schedule.layers]
    return with_layers(schedule, layers, through)


def _shared(mlps: tuple[MLP, ...], through: dict[LinearMap, LinearMap], to: Format) -> tuple[MLP, ...]:
    """The groups of neurons of a layer; groups with common kinks are merged, in the place of the first.

    The matrices with which they read folded variables are added to `through`.
    """
    alike: dict[object, list[MLP]] = {}
    for part in mlps:
        folded = through[part.read].blocks if part.read in through else ()
        alike.setdefault((frozenset(part.read.blocks), frozenset(folded)), []).append(part)
    merged: dict[MLP, MLP | None] = {part: part for part in mlps}
    for parts in alike.values():
        for group in _touching([_Keyed.of(part, through.get(part.read)) for part in parts]) if len(parts) > 1 else ():
            merged.update({one.part: None for one in group})
            merged[group[0].part] = _merged(group, through, to)
    return tuple(part for part in merged.values() if part is not None)


@dataclass(frozen=True, eq=False)
class _Keyed:
    """A group of neurons; for each its input weights up to a power of two, that power, and whether it has a kink."""

    part: MLP
    folded: LinearMap
    keys: list[bytes]
    scales: list[float]
    kinks: frozenset[bytes]

    @staticmethod
    def of(part: MLP, folded: LinearMap | None) -> _Keyed:
        read = part.read
        folded = folded or LinearMap({}, read.width)
        largest = np.max([np.abs(block).max(axis=0) for block in read.blocks.values()], axis=0)
        scales = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0))))
        blocks = [*sorted(read.blocks.items(), key=_by_id), *sorted(folded.blocks.items(), key=_by_id)]
        columns = np.concatenate([block / scales + 0.0 for _, block in blocks]).T  # -0.0 is 0.0
        keys = [column.tobytes() for column in np.ascontiguousarray(columns)]
        bent = np.any([block.any(axis=0) for variable, block in blocks if variable not in (ONE, BOS)], axis=0)
        kinks = frozenset(key for key, kink in zip(keys, np.broadcast_to(bent, len(keys)), strict=True) if kink)
        return _Keyed(part, folded, keys, scales.tolist(), kinks)


def _by_id(item: tuple[Variable, Array]) -> int:
    return id(item[0])


def _touching(parts: Sequence[_Keyed]) -> list[list[_Keyed]]:
    """The sets of several groups that are connected by common kinks."""
    groups: list[list[_Keyed]] = []
    for part in parts:
        near = [group for group in groups if any(part.kinks & one.kinks for one in group)]
        groups = [group for group in groups if group not in near]
        groups.append([one for group in near for one in group] + [part])
    return [group for group in groups if len(group) > 1]


def _merged(group: list[_Keyed], through: dict[LinearMap, LinearMap], to: Format) -> MLP:
    """One group of neurons with the writes of all."""
    first = group[0].part
    read, folded = first.read, group[0].folded
    for one in group[1:]:
        read, folded = read.beside(one.part.read), folded.beside(one.folded)
    places: dict[bytes, tuple[int, float]] = {}
    chosen = np.zeros(read.width, dtype=bool)
    writes = {variable: np.zeros((read.width, variable.size)) for one in group for variable, _ in one.part.writes}
    start = 0
    for one in group:
        for neuron, (key, scale) in enumerate(zip(one.keys, one.scales, strict=True), start):
            place, unit = places.setdefault(key, (neuron, scale))
            rows = {variable: scale / unit * matrix[neuron - start] for variable, matrix in one.part.writes}
            if not all(_add_up(writes[variable][place], row, to) for variable, row in rows.items()):
                place, rows = neuron, {variable: matrix[neuron - start] for variable, matrix in one.part.writes}
            chosen[place] = True
            for variable, row in rows.items():
                writes[variable][place] += row
        start += len(one.keys)
    narrowed = read.columns(chosen)
    through[narrowed] = folded.columns(chosen)
    return replace(
        first,
        label=", ".join(one.part.label for one in group),
        read=narrowed,
        writes=tuple((variable, matrix[chosen]) for variable, matrix in writes.items()),
        what="; ".join(one.part.what for one in group),
        as_linear=None,
    )


def _add_up(first: Array, second: Array, to: Format) -> bool:
    """Whether the format holds the sum exactly wherever both are not zero."""
    return to.holds((first + second)[(first != 0) & (second != 0)])
