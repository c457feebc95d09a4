"""The possible schedules of the smallest depth and their costs, for `narrow.py` and `solve.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tracr.caching import cached_property
from tracr.compiler.layers.assign import earliest, pattern
from tracr.craft.heads import Head
from tracr.ir.circuit import Circuit
from tracr.ir.liveness import Flows, flows_of, most_pairs
from tracr.ir.switches import PassName

__all__ = ["Cost", "Placing", "placing_of"]

Cost = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Placing:
    """Components by number, in topological order: the components each reads from, and its possible sub-layers.

    A component may be in any sub-layer of its kind from `first` to `last`, after the components it reads from
    (`before`). `patterns` groups the heads that are merged if they are in the same layer.
    """

    depth: int
    first: tuple[int, ...]
    last: tuple[int, ...]
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    flows: Flows
    patterns: tuple[tuple[int, ...], ...]
    query_width: tuple[int, ...]
    value_width: tuple[int, ...]

    def window(self, component: int) -> range:
        """The sub-layers a component may be in."""
        return range(self.first[component], self.last[component] + 1, 2)

    def heads(self, times: Sequence[int]) -> tuple[int, int]:
        """How many heads there are once those of one pattern are merged, and the sum of heads × d_head over layers."""
        counts: dict[int, int] = {}
        widest: dict[int, int] = {}
        for group in self.patterns:
            values: dict[int, int] = {}
            for head in group:
                values[times[head]] = values.get(times[head], 0) + self.value_width[head]
            for time, width in values.items():
                counts[time] = counts.get(time, 0) + 1
                widest[time] = max(widest.get(time, 0), self.query_width[group[0]], width)
        return sum(counts.values()), sum(count * widest[time] for time, count in counts.items())

    def cost(self, times: Sequence[int]) -> Cost:
        """The cost to minimise: peak live width, heads, heads × d_head, and how late the components are.

        Neurons are not part of the cost. The number of a component's neurons does not depend on its layer. Clearing
        takes neurons for every direction that is overwritten: all directions minus the width of the stream.
        """
        return int(self.flows.widths(times, self.depth).max()), *self.heads(times), sum(times)

    @cached_property
    def fewest(self) -> int:
        """A lower bound on the width of every schedule of this depth.

        After a sub-layer t these variables must be live: those written by then even if their writer is as late as
        possible, and still read later even if all readers are as early as possible. In an MLP sub-layer t, the
        variables that must be live before it and those that must be written in it occupy dimensions, minus the pairs
        that can be overwritten in place. Any further variable, dead or new, takes one more and adds at most one pair.
        """
        flows = self.flows
        soonest, freed = flows.spans(self.first, self.depth)
        born, _ = flows.spans(self.last, self.depth)
        times = np.arange(-1, 2 * self.depth)[:, None]
        between = ((born <= times) & (times < freed)) @ flows.sizes
        old, new = (born < times) & (times <= freed), (soonest == times) & (born == times)
        ending = old & (freed == times)
        pairs = most_pairs(
            *(new @ sizes for sizes in flows.overwriting), *(ending @ sizes for sizes in flows.overwritten)
        )
        within = (old | new) @ flows.sizes - pairs
        return int(max(between.max(), within.max()))

    def moved(self, times: Sequence[int], targets: Iterable[tuple[int, int]]) -> list[int] | None:
        """The times after these components move to other sub-layers; others move only as far as needed.

        `None` if there is no such schedule of this depth.
        """
        found = list(times)
        fixed = dict(targets)
        for component, time in fixed.items():
            if not self.first[component] <= time <= self.last[component]:
                return None
            found[component] = time
        time_of = found.__getitem__
        for component, before in self._reading:
            if component not in fixed and (time := max(map(time_of, before)) + 1) > found[component]:
                found[component] = time + (time - self.first[component]) % 2
        for component, after in self._read:
            if component not in fixed and (time := min(map(time_of, after)) - 1) < found[component]:
                found[component] = time - (time - self.first[component]) % 2
        ordered = all(max(map(time_of, before)) < found[component] for component, before in self._reading)
        return found if ordered else None

    @cached_property
    def _reading(self) -> list[tuple[int, tuple[int, ...]]]:
        """The components that read from others, and those others."""
        return [(component, before) for component, before in enumerate(self.before) if before]

    @cached_property
    def _read(self) -> list[tuple[int, tuple[int, ...]]]:
        """The components that others read from, and those others; the last component first."""
        return [(component, after) for component, after in enumerate(self.after) if after][::-1]


def placing_of(circuit: Circuit) -> Placing:
    """The possible sub-layers of a circuit's components."""
    first = earliest(circuit)
    depth = max(first, default=-1) // 2 + 1
    before, after = _neighbours(circuit)
    widths = [(part.query.width, part.value.width) if isinstance(part, Head) else (0, 0) for part in circuit.components]
    return Placing(
        depth,
        tuple(first),
        tuple(_latest(first, after, depth)),
        before,
        after,
        flows_of(circuit, circuit.components),
        _patterns(circuit),
        tuple(query for query, _ in widths),
        tuple(value for _, value in widths),
    )


Neighbours = tuple[tuple[int, ...], ...]


def _neighbours(circuit: Circuit) -> tuple[Neighbours, Neighbours]:
    """For each component, the components it reads from and the components that read from it."""
    writer = {variable: number for number, part in enumerate(circuit.components) for variable, _ in part.writes}
    before = tuple(
        tuple(dict.fromkeys(writer[variable] for variable in part.reads if variable in writer))
        for part in circuit.components
    )
    after: list[list[int]] = [[] for _ in before]
    for number, others in enumerate(before):
        for other in others:
            after[other].append(number)
    return before, tuple(map(tuple, after))


def _latest(first: Sequence[int], after: Neighbours, depth: int) -> list[int]:
    """The last sub-layer for each component that still leaves room for its readers."""
    last = [0] * len(first)
    for number in reversed(range(len(first))):
        time = min((last[other] for other in after[number]), default=2 * depth) - 1
        last[number] = time - (time - first[number]) % 2
    return last


def _patterns(circuit: Circuit) -> tuple[tuple[int, ...], ...]:
    """The heads grouped by pattern; without the pass `merge_heads`, every head is a group."""
    merge = circuit.options.on(PassName.MERGE_HEADS)
    groups: dict[object, list[int]] = {}
    for number, part in enumerate(circuit.components):
        if isinstance(part, Head):
            groups.setdefault(pattern(part) if merge else number, []).append(number)
    return tuple(map(tuple, groups.values()))
