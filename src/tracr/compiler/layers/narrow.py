"""The pass `schedule`: a local search for a narrower residual stream at the same depth.

The search starts with every component as early as possible, then as late as possible, and takes the better result. A
step moves one component, or all readers of a variable (which frees it sooner), or all heads of one pattern (which
become one head), to another sub-layer, together with the components in the way. The step is kept if it helps: first, if
the peak of live directions is lower; at equal peaks, if the next highest width is lower, and so on; then, at that peak,
if heads are fewer or smaller, or components are earlier. The search ends if no step helps, or after a fixed number of
tries. It makes no random choices and reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracr.compiler.layers.assign import in_sublayers
from tracr.compiler.layers.placing import Placing, placing_of
from tracr.ir.circuit import Circuit
from tracr.ir.schedule import PlacedCircuit

__all__ = ["HEURISTIC", "narrow", "narrowest"]

HEURISTIC = "not run: heuristic"
WORK = 100_000  # components times tries

Step = tuple[tuple[int, ...], int, bool]  # components, the target sub-layer, whether only components later than it move


def narrow(circuit: Circuit) -> PlacedCircuit:
    """A schedule of the smallest depth with a narrow residual stream, often the narrowest possible."""
    placing = placing_of(circuit)
    return in_sublayers(circuit, narrowest(placing), HEURISTIC, placing.fewest)


def narrowest(placing: Placing) -> list[int]:
    """The best sub-layers that the search finds."""
    if placing.first == placing.last:  # no component can move
        return list(placing.first)
    found, fewest = [], placing.fewest
    for start in (placing.first, placing.last):
        times = list(start)
        if placing.cost(times)[0] > fewest:
            times = _descend(placing, times, lambda times: _profile(placing, times))
        found.append(_descend(placing, times, placing.cost))
    return min(found, key=placing.cost)


def _profile(placing: Placing, times: list[int]) -> list[int]:
    """The live widths, the largest first."""
    return sorted(placing.flows.widths(times, placing.depth).tolist(), reverse=True)


def _descend(placing: Placing, times: list[int], cost: Callable[[list[int]], Any]) -> list[int]:
    """Steps that lower the cost, until none does."""
    best, steps = cost(times), _steps(placing)
    tries = 1 + WORK // max(1, len(times))
    seen = {tuple(times)}  # their costs are known not to be below the best
    improved = True
    while improved:
        improved = False
        for group, time, only_later in steps:
            targets = [(one, time - (time - placing.first[one]) % 2) for one in group]
            targets = [(one, to) for one, to in targets if to < times[one] or (to > times[one] and not only_later)]
            if not targets:
                continue
            moved = placing.moved(times, targets)
            if moved is not None and (schedule := tuple(moved)) not in seen:
                seen.add(schedule)
                if (now := cost(moved)) < best:
                    times, best, improved = moved, now, True
            tries -= 1
            if not tries:
                return times
    return times


def _steps(placing: Placing) -> list[Step]:
    """The steps to try: one component to any sub-layer, heads of one pattern to one, readers of a variable to one."""
    steps: list[Step] = []
    for component in range(placing.flows.components):
        if placing.first[component] < placing.last[component]:
            steps += [((component,), time, False) for time in placing.window(component)]
    for heads in placing.patterns:
        together = range(max(placing.first[head] for head in heads), min(placing.last[head] for head in heads) + 1, 2)
        steps += [(heads, time, False) for time in together if len(heads) > 1]
    for readers in placing.flows.readers:
        if len(readers) > 1 and placing.flows.unembedding not in readers:
            soonest, latest = (max(times[reader] for reader in readers) for times in (placing.first, placing.last))
            steps += [(readers, time, True) for time in range(soonest, latest)]
    return steps
