"""Automatic circuit discovery (ACDC; Conmy et al. 2023), with the threshold at which an edge is removed as its score.

For a set R of removed edges let D(R) be the mean over pairs of |m(L_R(x, x')) - m(L(x))|, where L_R are the logits on x
when all edges of R are patched with the corrupted input x'. For a threshold τ, ACDC visits the edges from the output
backwards, from R = ∅, and removes an edge e for good if

    D(R ∪ {e}) - D(R) < τ

The score of an edge is the smallest threshold of a sweep for which it is removed; edges that are never removed get
twice the largest. Thresholds are shares of D(all edges). The paper takes the KL divergence as D; outputs here may be
numbers, therefore D is the distance of the metric. Readers are visited from the last to the first, and their writers
from the last to the first. One forward pass per edge, threshold and pair; thresholds that removed the same edges so far
share it.

Checked score by score against auto-circuit, with its order of edges and its squared distance of logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.passes import BothPasses, both_passes, count_passes

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["THRESHOLDS", "acdc", "backwards", "removal_thresholds"]

Array = NDArray[Any]
THRESHOLDS = tuple(float(share) for share in np.geomspace(1e-4, 1, 13).round(6))


def acdc(subject: Any, data: MethodData, *, thresholds: Sequence[float] = THRESHOLDS) -> dict[EdgeKey, float]:
    """The score of every edge of a subject: the share of D(all edges), as above, at which the edge is removed."""
    shares = np.asarray(thresholds, dtype=np.float64)
    if shares.ndim != 1 or not shares.size or not np.isfinite(shares).all() or (shares <= 0).any():
        raise InputError(f"thresholds are positive numbers, not {thresholds!r}", hint="such as [0.01, 0.1]")
    both = both_passes(subject, data)

    def distance(logits: Array) -> Array:
        changed = data.change(both.outputs, both.token, both.clean.logits, logits)
        return np.asarray(changed.mean(axis=-1))

    whole = float(distance(both.corrupted.logits)) or 1.0
    found = removal_thresholds(both, backwards(both.patching.candidates), distance, shares * whole)
    return {key: found[key] / whole for key in both.patching.candidates}


def backwards(candidates: Sequence[EdgeKey]) -> list[EdgeKey]:
    """The edges, those of later readers first; of one reader, those of later writers first."""
    place = {name: number for number, name in enumerate(dict.fromkeys(writer for writer, _ in candidates))}
    readers = list(dict.fromkeys(reader for writer, reader in candidates if writer == "embed"))
    rank = {reader: number for number, reader in enumerate(readers)}
    return sorted(candidates, key=lambda key: (-rank[key[1]], -place[key[0]]))


def removal_thresholds(
    both: BothPasses, order: Sequence[EdgeKey], distance: Callable[[Array], Array], thresholds: Sequence[float] | Array
) -> dict[EdgeKey, float]:
    """For each edge the smallest threshold that removes it, or twice the largest.

    `distance` maps logits [set, pair, position, logit] to one number for each set of removed edges.
    """
    removed: list[frozenset[EdgeKey]] = [frozenset()] * len(thresholds)
    reached = np.zeros(len(thresholds))
    found = dict.fromkeys(order, 2 * float(max(thresholds)))
    for edge in order:
        sets = list(dict.fromkeys(removed))
        tried = both.patching.run(both.clean, both.corrupted.written, [[*one, edge] for one in sets], distance)
        count_passes(len(sets) * both.pairs)
        for number, threshold in enumerate(thresholds):
            now = tried[sets.index(removed[number])]
            if now - reached[number] < threshold:
                removed[number] |= {edge}
                reached[number] = now
                found[edge] = min(found[edge], float(threshold))
    return found
