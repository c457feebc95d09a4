"""The freedom a schedule has at the smallest depth, and what a choice costs, for `narrow.py` and `solve.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tracr.compiler.layers.assign import earliest, pattern
from tracr.craft.heads import Head
from tracr.ir.circuit import Circuit
from tracr.ir.liveness import Flows, flows_of, most_pairs
from tracr.ir.switches import PassName

__all__ = ["Cost", "Placing", "placing_of"]

Cost = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Placing:
    """Components by number, in topological order: what each reads from, and the sub-layers it may stand in.

    A component may stand in any sub-layer of its kind from `first` to `last`, as long as it comes after those it reads
    from (`before`). `patterns` groups the heads that become one where they share a layer.
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
        """The sub-layers a component may stand in."""
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
        """What is minimised: peak live width, heads, heads × d_head, and how late everything is.

        Neurons are no part of it: there are as many wherever they stand, and each direction that takes the place of
        another has that one cleared, which are all directions but as many as the stream is wide.
        """
        return int(self.flows.widths(times, self.depth).max()), *self.heads(times), sum(times)

    @cached_property
    def fewest(self) -> int:
        """A width that no schedule of this depth goes below.

        After a sub-layer t every variable is live that is written by then even if its writer waits as long as it can,
        and is still read if all its readers come as early as they can. In an MLP sub-layer t whatever must be live
        before it takes up room, and what must be written in it, less the pairs that can be overwritten in place: any
        further variable, dead or new, takes up a place and makes at most one pair more.
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
        """These components in other sub-layers, and what stands in their way moved no farther than needed.

        `None` if there is no such schedule of this depth.
        """
        found = list(times)
        fixed = dict(targets)
        for component, time in fixed.items():
            if not self.first[component] <= time <= self.last[component]:
                return None
            found[component] = time
        others = [component for component in range(len(found)) if component not in fixed]
        for component in others:
            time = max((found[other] for other in self.before[component]), default=-1) + 1
            if time > found[component]:
                found[component] = time + (time - self.first[component]) % 2
        for component in reversed(others):
            time = min((found[other] for other in self.after[component]), default=2 * self.depth) - 1
            if time < found[component]:
                found[component] = time - (time - self.first[component]) % 2
        ordered = all(found[other] < time for time, before in zip(found, self.before, strict=True) for other in before)
        return found if ordered else None


def placing_of(circuit: Circuit) -> Placing:
    """The freedom there is in placing a circuit's components."""
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
    """For each component those that it reads from, and those that read from it."""
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
    """The last sub-layer of each component's kind from which its readers can still be reached in time."""
    last = [0] * len(first)
    for number in reversed(range(len(first))):
        time = min((last[other] for other in after[number]), default=2 * depth) - 1
        last[number] = time - (time - first[number]) % 2
    return last


def _patterns(circuit: Circuit) -> tuple[tuple[int, ...], ...]:
    """The heads in groups of one pattern; each by itself without the pass `merge_heads`."""
    merge = circuit.options.on(PassName.MERGE_HEADS)
    groups: dict[object, list[int]] = {}
    for number, part in enumerate(circuit.components):
        if isinstance(part, Head):
            groups.setdefault(pattern(part) if merge else number, []).append(number)
    return tuple(map(tuple, groups.values()))
