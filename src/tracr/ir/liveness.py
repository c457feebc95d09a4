"""How wide the residual stream must be: which directions take up room after each sub-layer.

Sub-layers are numbered as they come, 0 attention, 1 MLP, 2 attention, ...; the embedding is -1, the unembedding comes
after the last. A direction is live from the sub-layer that writes it to the last one that reads it; BOS, PAD and one
always are. What is dead stays in the stream until neurons subtract it (`slot_reuse.py`): in the MLP sub-layer that
reads it last, or the first one after the head that reads it last. Its place is free after that; or at once, for what
the same MLP writes, where the two variables allow that (`in_place.py`).

The largest of the widths is what the residual stream needs if dead directions are overwritten, and all it needs: spans
of time are an interval graph, which takes as many colours as there are spans at any one time. In which pairs an MLP
overwrites in place matters to the width after this MLP only, where the most pairs are best. Exact codes overwrite small
integers only, rough ones anything small, so the most is to have rough ones take what is no integer first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.ir.circuit import Component, Frame
from tracr.ir.in_place import as_new, as_old

__all__ = ["Flows", "flows_of", "live_widths", "most_pairs"]

Times = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Flows:
    """For each variable of the residual stream: its directions, the component that writes it, those that read it.

    Components have their numbers; two more stand for the embedding and the unembedding.
    """

    variables: tuple[Variable, ...]
    sizes: NDArray[np.intp]
    writer: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...]
    components: int

    @property
    def embedding(self) -> int:
        """The number that stands for the embedding."""
        return self.components

    @property
    def unembedding(self) -> int:
        """The number that stands for the unembedding."""
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
        """The directions that take up room after the embedding and after each sub-layer."""
        weights = self._weights
        sublayers = 2 * depth + 3  # the embedding first
        when = np.repeat(self.spans(times, depth), 3, axis=0) + np.arange(1, 6 * sublayers, sublayers)[:, None]
        counts = np.bincount(when.ravel(), weights.ravel(), minlength=6 * sublayers).astype(np.intp)
        new, rough, exact, dead, small, integer = counts.reshape(6, sublayers)
        live = np.cumsum(new - dead)
        return np.asarray((live + dead - most_pairs(rough, exact, small, integer))[: 2 * depth + 1])

    @cached_property
    def _weights(self) -> Times:
        """What is counted where variables are written, and where they are freed: three kinds of directions each."""
        return np.stack([self.sizes, *self.overwriting, self.sizes, *self.overwritten])

    @cached_property
    def overwriting(self) -> tuple[Times, Times]:
        """The directions that can overwrite others: rough ones, exact ones."""
        kind = np.array([as_new(variable) for variable in self.variables], dtype=np.intp)
        return self.sizes * (kind == 1), self.sizes * (kind == 2)

    @cached_property
    def overwritten(self) -> tuple[Times, Times]:
        """The directions that can be overwritten: small ones that are no integers, and those that are."""
        kind = np.array([as_old(variable) for variable in self.variables], dtype=np.intp)
        return self.sizes * (kind == 1), self.sizes * (kind == 2)


def most_pairs(rough: Times, exact: Times, small: Times, integer: Times) -> Times:
    """How many directions can be overwritten in place: so many new ones, so many dead ones of each kind."""
    by_rough = np.minimum(rough, small)
    return np.asarray(by_rough + np.minimum(rough - by_rough + exact, integer))


def flows_of(frame: Frame, components: Sequence[Component]) -> Flows:
    """What flows between components."""
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
    )


def live_widths(frame: Frame, sublayers: Iterable[tuple[int, Sequence[Component]]]) -> tuple[int, ...]:
    """The directions that take up room after the embedding, attention 0, MLP 0, attention 1, ...

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
