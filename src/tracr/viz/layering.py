"""Places a directed graph in ranks: readers below what they read, few crossing edges, no edge through a box.

The four usual steps: assign ranks by longest path; add a bend wherever an edge passes a rank; order each rank by
repeatedly moving every node to the mean of its neighbours; choose coordinates as close to the neighbours as possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Arrangement", "arrange"]

SWEEPS = 40
GAP, BEND = 0.22, 0.12  # inches between boxes, and around a bend
STRAIGHT = 3  # the weight of keeping bends in line, relative to boxes
RANK = 0.42  # inches between ranks, for the edges

Place = tuple[int, int]  # (node, rank): a box in its own rank, a bend of its edges in a later one
Point = tuple[float, float]


@dataclass(frozen=True)
class Arrangement:
    """The centre of every box, and the points of every edge (source, target).

    Edges move sideways only between ranks; between the boxes of a rank they go straight down.
    """

    middles: Mapping[int, Point]
    routes: Mapping[tuple[int, int], Sequence[Point]]
    width: float
    height: float


def arrange(
    sizes: Sequence[tuple[float, float]],
    inputs: Sequence[Sequence[int]],
    late: Sequence[int] = (),
    ranks: Sequence[int] | None = None,
) -> Arrangement:
    """Place boxes of these sizes; `inputs[n]` are the nodes before `n` that it reads.

    Nodes in `late` read nothing; they may be placed directly above their first reader. If `ranks` are given, they are
    those of the nodes: 0, 1, ... without gaps, and readers have larger ones than what they read.
    """
    rank = _ranks(inputs, late) if ranks is None else list(ranks)
    above, below = _bends(inputs, rank)
    order = _ordered(above, below, max(rank, default=0) + 1)
    room = {place: sizes[place[0]][0] if rank[place[0]] == place[1] else BEND for row in order for place in row}
    xs = _coordinates(order, above, below, room)
    left = min((xs[place] - room[place] / 2 for place in xs), default=0.0)
    xs = {place: x - left for place, x in xs.items()}
    heights = _heights(order, rank, sizes)
    tops = [sum(heights[:number]) + RANK * number for number in range(len(heights))]
    middles = {n: (xs[n, rank[n]], tops[rank[n]] + heights[rank[n]] / 2) for n in range(len(sizes))}
    routes = {}
    for node, read in enumerate(inputs):
        entries = _entries(dict.fromkeys(read), node, xs, rank, sizes[node][0])
        for source, entry in entries.items():
            start = (xs[source, rank[source]], middles[source][1] + sizes[source][1] / 2)
            end = (entry, middles[node][1] - sizes[node][1] / 2)
            bends = [(xs[source, at], tops[at], heights[at]) for at in range(rank[source], rank[node])]
            routes[source, node] = _route(start, bends, (entry, tops[rank[node]]), end)
    width = max((xs[place] + room[place] / 2 for place in xs), default=0.0)
    return Arrangement(middles, routes, width, sum(heights) + RANK * (len(heights) - 1) if heights else 0.0)


def _heights(
    order: Sequence[Sequence[Place]], rank: Sequence[int], sizes: Sequence[tuple[float, float]]
) -> list[float]:
    """How high each rank is: as its highest box."""
    return [max((sizes[node][1] for node, at in row if rank[node] == at), default=0.0) for row in order]


def _route(start: Point, ranks: Sequence[tuple[float, float, float]], entry: Point, end: Point) -> list[Point]:
    """The points of an edge: at the top and bottom of each rank (x, top, height) it passes, without the first top."""
    sides = [point for x, top, height in ranks for point in ((x, top), (x, top + height))][1:]
    return list(dict.fromkeys((round(x, 6), round(y, 6)) for x, y in (start, *sides, entry, end)))


def _ranks(inputs: Sequence[Sequence[int]], late: Sequence[int]) -> list[int]:
    rank: list[int] = []
    for read in inputs:
        rank.append(max((rank[source] + 1 for source in read), default=0))
    for node in late:
        rank[node] = min((rank[reader] - 1 for reader, read in enumerate(inputs) if node in read), default=0)
    return rank


Neighbours = dict[Place, list[Place]]


def _bends(inputs: Sequence[Sequence[int]], rank: Sequence[int]) -> tuple[Neighbours, Neighbours]:
    """The neighbours above and below each node and bend; edges from one node share their bends."""
    above: Neighbours = {(node, rank[node]): [] for node in range(len(inputs))}
    below: Neighbours = {place: [] for place in above}
    for node, read in enumerate(inputs):
        for source in dict.fromkeys(read):
            chain = [(source, at) for at in range(rank[source], rank[node])]
            for upper, lower in zip(chain, [*chain[1:], (node, rank[node])], strict=True):
                for neighbours, one, other in ((below, upper, lower), (above, lower, upper)):
                    if other not in neighbours.setdefault(one, []):
                        neighbours[one].append(other)
    return above, below


def _ordered(above: Neighbours, below: Neighbours, ranks: int) -> list[list[Place]]:
    """The order within each rank: the best found in several sweeps down and up."""
    places = sorted(above.keys() | below.keys())
    order = [[place for place in places if place[1] == rank] for rank in range(ranks)]
    best, fewest = [list(row) for row in order], _crossings(order, below)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        _sort_ranks(order, above if down else below, range(ranks) if down else range(ranks)[::-1])
        crossings = _crossings(order, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in order], crossings
    return best


def _sort_ranks(order: Sequence[list[Place]], neighbours: Neighbours, ranks: Sequence[int]) -> None:
    """Sort each rank by the mean place of its neighbours, one rank after the other."""
    at = {place: number for row in order for number, place in enumerate(row)}
    for rank in ranks:
        wish = {
            place: sum(at[other] for other in near) / len(near) if (near := neighbours.get(place)) else at[place]
            for place in order[rank]
        }
        order[rank].sort(key=wish.__getitem__)
        at.update({place: number for number, place in enumerate(order[rank])})


def _crossings(order: Sequence[Sequence[Place]], below: Neighbours) -> int:
    total = 0
    for row, next_row in pairwise(order):
        at = {place: number for number, place in enumerate(next_row)}
        ends = [at[other] for place in row for other in sorted(below.get(place, ()), key=at.__getitem__)]
        total += sum(first > second for n, first in enumerate(ends) for second in ends[n + 1 :])
    return total


def _coordinates(
    order: Sequence[Sequence[Place]], above: Neighbours, below: Neighbours, room: Mapping[Place, float]
) -> dict[Place, float]:
    """Centres as close as possible to the mean of the neighbours' centres, with the given order and distances."""
    xs: dict[Place, float] = {}
    for row in order:
        offsets = _offsets(row, room)
        xs.update({place: offset - offsets[-1] / 2 for place, offset in zip(row, offsets, strict=True)})
    for sweep in range(SWEEPS):
        for row in order if sweep % 2 == 0 else reversed(order):
            wishes = []
            for place in row:
                near = [*above.get(place, ()), *below.get(place, ())]
                pull = {other: STRAIGHT ** ((room[place] == BEND) + (room[other] == BEND)) for other in near}
                total = sum(xs[other] * weight for other, weight in pull.items())
                wishes.append(total / sum(pull.values()) if pull else xs[place])
            offsets = _offsets(row, room)
            free = _ascending([wish - offset for wish, offset in zip(wishes, offsets, strict=True)])
            xs.update({place: x + offset for place, x, offset in zip(row, free, offsets, strict=True)})
    return xs


def _offsets(row: Sequence[Place], room: Mapping[Place, float]) -> list[float]:
    """The centres if every box is as far left as possible."""
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (room[one] + room[other]) / 2 + GAP)
    return offsets


def _ascending(wishes: Sequence[float]) -> list[float]:
    """The ascending numbers closest to `wishes` (least squares): neighbours out of order are pooled.

    >>> _ascending([1, 3, 2, 5])
    [1.0, 2.5, 2.5, 5.0]
    """
    pools: list[tuple[float, int]] = []
    for wish in wishes:
        pools.append((float(wish), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, n), (other, m) = pools[-2:]
            pools[-2:] = [((one * n + other * m) / (n + m), n + m)]
    return [mean for mean, count in pools for _ in range(count)]


def _entries(
    read: Mapping[int, None], node: int, xs: Mapping[Place, float], rank: Sequence[int], width: float
) -> dict[int, float]:
    """The end points of the edges into a box, next to each other in the order of their sources."""
    ordered = sorted(read, key=lambda source: xs[source, rank[node] - 1])
    apart = min(0.3, width / max(1, len(ordered)))
    middle = xs[node, rank[node]]
    return {source: middle + (place - (len(ordered) - 1) / 2) * apart for place, source in enumerate(ordered)}
