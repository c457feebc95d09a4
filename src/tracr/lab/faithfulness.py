"""Faithfulness of circuits: how much of the metric is left if only a circuit sees the clean input.

A circuit C is a set of edges. It runs on a pair with all edges outside C patched with the corrupted input. Let m(C) be
the mean of the metric over pairs, M the circuit of all edges and ∅ that of none. The faithfulness of C is

    f(C) = (m(C) - m(∅)) / (m(M) - m(∅))

The circuit C_k has the k edges with the largest scores, of n. With the trapezoid rule over the fraction k/n of edges,

    CPR = ∫ f(C_k),        CMD = ∫ |1 - f(C_k)|,        k = 0 … n

Larger CPR and smaller CMD are better. Edges with equal scores have no order: they enter together, and f is linear in
between, as the ROC curve is. Edges without a score share the lowest rank. If there are more than 128 circuits, those
whose sizes are nearest to 128 evenly spaced ones are run, and f is linear in between; `most=None` runs all. MIB
(Mueller et al. 2025) integrates over ten fractions, from 0.1 % to 100 %, with the size rounded down; these areas are
given too for 1,000 edges or more. The scores are undefined where m(M) = m(∅), up to the rounding of float32.

At the granularities "head" and "component", an edge stands for all edges that are merged into it: they enter together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import whole
from tracr.ground_truth.data import Granularity
from tracr.ground_truth.edge_keys import Found, coarsened, read_found
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.data import MethodData
from tracr.lab.methods.passes import GRANULARITIES, BothPasses, both_passes, merged_edges
from tracr.nearness import LAST_SUM, nearly_equal

__all__ = ["MIB_FRACTIONS", "MIB_LEAST", "Faithfulness", "circuit_metrics", "faithfulness"]

Array = NDArray[np.float64]
MIB_FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MOST = 128  # circuits of a ranking
MIB_LEAST = 1000  # edges: below, the smallest fraction is no edge


@dataclass(frozen=True)
class Faithfulness:
    """The faithfulness of the circuits of a ranking; `None` where it is undefined."""

    cpr: float | None
    cmd: float | None
    mib_cpr: float | None
    """CPR over the ten fractions of MIB, for 1,000 edges or more."""
    mib_cmd: float | None
    sizes: tuple[int, ...] = field(repr=False)
    """The numbers of edges of the circuits that were run, from 0 to all: sizes that split no tie, at most 128."""
    metrics: tuple[float, ...] = field(repr=False)
    """m(C) for each of them."""
    values: tuple[float, ...] | None = field(repr=False)
    """f(C) for each of them."""


def faithfulness(
    subject: Any, data: MethodData, found: Found, *, granularity: Granularity = "qkv", most: int | None = MOST
) -> Faithfulness:
    """CPR and CMD of what a method found: numbers or booleans for edges, or a set of edges.

    Without weights in `data`, the metric of a pair is 1 if all answers are those to the clean input, else 0.

    Args:
        subject: a model, or what has a `model`.
        data: the pairs and the metric.
        found: scores of edges of this granularity or a finer one; an edge has the largest score of its parts.
        granularity: "qkv", "head" or "component".
        most: the largest number of circuits to run; `None`: all.
    """
    both = both_passes(subject, data)
    parts = merged_edges(both.patching.candidates, granularity)
    groups = _groups(_read(found, parts, granularity), parts)
    sizes = np.cumsum([0, *map(len, groups)])
    chosen = _grid(sizes, most)
    circuits = [[part for group in groups[:count] for key in group for part in parts[key]] for count in chosen]
    metrics, sizes = circuit_metrics(both, data, circuits), sizes[chosen]
    empty, full = metrics[0], metrics[-1]
    numbers: dict[str, Any] = {"sizes": tuple(sizes.tolist()), "metrics": tuple(metrics.tolist())}
    if nearly_equal(full, empty, LAST_SUM):
        return Faithfulness(None, None, None, None, **numbers, values=None)
    values = (metrics - empty) / (full - empty)
    mib: tuple[float | None, float | None] = (None, None)
    if len(parts) >= MIB_LEAST:
        mib = _areas(np.array(MIB_FRACTIONS), np.interp(_mib_sizes(len(parts)), sizes, values))
    return Faithfulness(*_areas(sizes / len(parts), values), *mib, **numbers, values=tuple(values.tolist()))


def _read(found: Found, parts: Mapping[EdgeKey, list[EdgeKey]], granularity: Granularity) -> Mapping[EdgeKey, float]:
    """The scores of edges of a granularity, from those of this or of finer ones."""
    finer = GRANULARITIES[GRANULARITIES.index(granularity) :]
    fine = [key for several in parts.values() for key in several]
    known = {coarsened(key, one): coarsened(key, granularity) for one in finer for key in fine}
    return read_found(found, known)[0]


def _mib_sizes(edges: int) -> list[int]:
    return [int(edges * fraction) for fraction in MIB_FRACTIONS]


def _grid(sizes: NDArray[np.int64], most: int | None) -> list[int]:
    """The circuits to run, as places in `sizes`: all, or those nearest to sizes that are evenly spaced, and MIB's."""
    if most is None or len(sizes) <= whole("most", most, 2):
        return list(range(len(sizes)))
    total = int(sizes[-1])
    wanted = np.linspace(0, total, most)
    found = {int(place) for place in np.abs(sizes[:, None] - wanted).argmin(axis=0)} | {0, len(sizes) - 1}
    if total >= MIB_LEAST:
        after = np.searchsorted(sizes, _mib_sizes(total))
        found |= {int(place) for place in (*after, *np.maximum(after - 1, 0))}
    return sorted(found)


def _areas(fractions: Array, values: Array) -> tuple[float, float]:
    """CPR and CMD."""
    widths = np.diff(fractions)
    cpr, cmd = (float((widths * (one[1:] + one[:-1])).sum() / 2) for one in (values, np.abs(1 - values)))
    return cpr, cmd


def _groups(scores: Mapping[EdgeKey, float], candidates: Collection[EdgeKey]) -> list[list[EdgeKey]]:
    """The edges by descending score, those with equal scores together; those without one last."""
    groups: dict[float, list[EdgeKey]] = {}
    for key in candidates:
        groups.setdefault(scores.get(key, -np.inf), []).append(key)
    return [groups[score] for score in sorted(groups, reverse=True)]


def circuit_metrics(both: BothPasses, data: MethodData, circuits: Sequence[Sequence[EdgeKey]]) -> Array:
    """m(C) of each circuit."""
    outside = []
    for circuit in circuits:
        inside = set(circuit)
        outside.append([key for key in both.patching.candidates if key not in inside])

    def metric(logits: NDArray[Any]) -> NDArray[Any]:
        if data.weights is None:
            return 1 - data.change(both.outputs, both.token, both.clean.logits, logits)
        chosen = logits[..., : data.weights.shape[-1]].astype(np.float64)
        return np.asarray((chosen * data.weights).sum(axis=(-1, -2)))

    found = both.patching.run(both.clean, both.corrupted.written, outside, metric)
    return np.asarray(found.mean(axis=1), dtype=np.float64)
