"""How wide the residual stream must be: the directions that occupy a dimension after each sub-layer.

Sub-layers are numbered in order: 0 attention, 1 MLP, 2 attention, ... The embedding is -1, the unembedding comes after
the last. A direction is live from the sub-layer that writes it to the last one that reads it; BOS, PAD and one are
always live. A dead direction stays in the stream until neurons subtract it (`slot_reuse.py`): in the MLP sub-layer that
reads it last, or in the first one after the head that reads it last. Its dimension is free after that MLP. A variable
written by the same MLP can overwrite it in place, if the two variables allow it (`in_place.py`).

If dead directions are overwritten, the residual stream needs exactly the largest of these widths: spans of time form an
interval graph, which needs as many colours as there are spans at any one time. Which pairs an MLP overwrites in place
affects only the width after this MLP, and the most pairs are best. Exact codes overwrite small integers only, rough
codes overwrite anything small. Rough codes should therefore first overwrite directions that are not integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.ir.circuit import Component, Frame
from tracr.ir.in_place import as_new, as_old

__all__ = ["Flows", "flows_of", "live_widths", "most_pairs"]

Times = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Flows:
    """For each variable of the residual stream: its directions, the component that writes it, the readers.

    Components are given by number; two more numbers mean the embedding and the unembedding. `short`: the model is for a
    short format.
    """

    variables: tuple[Variable, ...]
    sizes: NDArray[np.intp]
    writer: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...]
    components: int
    short: bool = False

    @property
    def embedding(self) -> int:
        """The number of the embedding."""
        return self.components

    @property
    def unembedding(self) -> int:
        """The number of the unembedding."""
        return self.components + 1

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Writers [variable], and readers [variable, n], each list filled up with its writer."""
        most = max(map(len, self.readers), default=0)
        rows = [
            (*readers, *[writer] * (most - len(readers)))
            for writer, readers in zip(self.writer, self.readers, strict=True)
        ]
        return np.array(self.writer, dtype=np.intp), np.array(rows, dtype=np.intp).reshape(len(rows), most)

    def spans(self, times: Sequence[int] | Times, depth: int) -> tuple[Times, Times]:
        """When each variable is written, and the sub-layer that frees it, for components in these sub-layers."""
        writer, readers = self._arrays
        extended = np.array([*times, -1, 2 * depth], dtype=np.intp)
        born = extended[writer]
        last = np.maximum(extended[readers].max(axis=1, initial=-1), born + 1)
        return born, last | 1

    def widths(self, times: Sequence[int] | Times, depth: int) -> Times:
        """How many directions occupy a dimension after the embedding and after each sub-layer."""
        weights = self._weights
        sublayers = 2 * depth + 3  # the embedding first
        when = np.empty(weights.shape, dtype=np.intp)
        when[:3], when[3:] = self.spans(times, depth)
        when += np.arange(1, 6 * sublayers, sublayers)[:, None]
        counts = np.bincount(when.ravel(), weights.ravel(), minlength=6 * sublayers).astype(np.intp)
        new, rough, exact, dead, small, integer = counts.reshape(6, sublayers)
        live = np.cumsum(new - dead)
        return np.asarray((live + dead - most_pairs(rough, exact, small, integer))[: 2 * depth + 1])

    @cached_property
    def _weights(self) -> Times:
        """The counts added where variables are written, and where they are freed: three kinds of directions each."""
        return np.stack([self.sizes, *self.overwriting, self.sizes, *self.overwritten])

    @cached_property
    def overwriting(self) -> tuple[Times, Times]:
        """The directions that can overwrite others: rough ones, exact ones."""
        kind = np.array([as_new(variable, short=self.short) for variable in self.variables], dtype=np.intp)
        return self.sizes * (kind == 1), self.sizes * (kind == 2)

    @cached_property
    def overwritten(self) -> tuple[Times, Times]:
        """The directions that can be overwritten: small ones that are not integers, and small integers."""
        kind = np.array([as_old(variable) for variable in self.variables], dtype=np.intp)
        return self.sizes * (kind == 1), self.sizes * (kind == 2)


def most_pairs(rough: Times, exact: Times, small: Times, integer: Times) -> Times:
    """How many directions can be overwritten in place, given the numbers of new and of dead ones of each kind."""
    by_rough = np.minimum(rough, small)
    return np.asarray(by_rough + np.minimum(rough - by_rough + exact, integer))


def flows_of(frame: Frame, components: Sequence[Component]) -> Flows:
    """The writer and the readers of every variable."""
    embedding, unembedding = len(components), len(components) + 1
    special = (BOS, PAD, ONE) if frame.options.level == 0 else (BOS, PAD)
    writer = dict.fromkeys((*special, *(source.variable for source in frame.embedded)), embedding)
    readers: dict[Variable, list[int]] = {}
    for number, component in enumerate(components):
        for variable, _ in component.writes:
            writer[variable] = number
        for variable in component.reads:
            readers.setdefault(variable, []).append(number)
    for variable in (*special, *(variable for linear in frame.unembedded for variable in linear.blocks)):
        readers.setdefault(variable, []).append(unembedding)
    sizes = {variable: len(frame.kept(variable)) for variable in writer}
    kept = tuple(variable for variable, size in sizes.items() if size)
    return Flows(
        kept,
        np.array([sizes[variable] for variable in kept], dtype=np.intp),
        tuple(writer[variable] for variable in kept),
        tuple(tuple(dict.fromkeys(readers.get(variable, ()))) for variable in kept),
        len(components),
        frame.options.format.short,
    )


def live_widths(frame: Frame, sublayers: Iterable[tuple[int, Sequence[Component]]]) -> tuple[int, ...]:
    """How many directions occupy a dimension after the embedding, attention 0, MLP 0, attention 1, ...

    >>> import tracr
    >>> from tracr.rasp import programs
    >>> schedule = tracr.compile(programs.make_hist(), "ab", 3).schedule
    >>> live_widths(schedule, schedule.sublayers())
    (4, 5, 6)
    """
    placed = [(number, part) for number, components in sublayers for part in components]
    times = [number for number, _ in placed]
    found = flows_of(frame, [part for _, part in placed]).widths(times, max(times, default=-1) // 2 + 1)
    return tuple(int(width) for width in found)
