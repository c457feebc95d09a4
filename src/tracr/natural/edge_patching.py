"""Exact edge patching of twins: does it separate the edges that the teacher needs from the inert ones?

For pairs of inputs of one length, clean and corrupted, each edge of the twin is patched in turn: its reader sees the
writer's output on the corrupted input. The score of an edge is the share of pairs in which the twin's answer changes at
some token. Distances of logits would not do: an inert edge may move the logits of a trained network far without any
effect on its answers.

The teacher says which edges are *needed alone* (its answer changes on some pair) and which are *inert* (on no pair).
Patches without a true answer (`defined.py`) are left out, for the teacher and for the twin. Edges are undecided, and
left out of the AUROC, if the teacher's answer changes only in such patches or by less than a number needs to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from tracr.arguments import whole
from tracr.errors import TracrError
from tracr.ground_truth.scores import area_under_curve
from tracr.natural.examiner import Examiner, batches
from tracr.natural.lessons import CLEAR, InterventionDraws
from tracr.natural.network import Patch, network_of
from tracr.natural.teacher import Effect, Lesson, Teacher, inputs_of, teacher_of

if TYPE_CHECKING:
    from tracr.natural.twin_model import TwinModel

__all__ = ["EdgeSeparation", "edge_auroc", "edge_aurocs"]

Array = NDArray[Any]
PATCHED = {"cpu": 4096}  # patches in one batch, by device
MOST_PATCHED = 32_768


@dataclass(frozen=True)
class EdgeSeparation:
    """The share of pairs in which patching an edge changes the twin's answer, for needed and for inert edges."""

    auroc: float | None
    """`None` if there are no needed or no inert edges."""
    pairs: int
    needed: Mapping[str, float] = field(repr=False)
    inert: Mapping[str, float] = field(repr=False)
    undecided: tuple[str, ...] = field(repr=False)


def edge_auroc(
    twin: TwinModel, *, pairs: int = 512, seed: int = 0, data: Sequence[Sequence[Any]] | None = None
) -> EdgeSeparation:
    """The AUROC of exact edge patching on a twin; see `edge_aurocs`."""
    return edge_aurocs([twin], pairs=pairs, seed=seed, data=data)[0]


def edge_aurocs(
    twins: Sequence[TwinModel], *, pairs: int = 512, seed: int = 0, data: Sequence[Sequence[Any]] | None = None
) -> list[EdgeSeparation]:
    """The AUROC of exact edge patching on each of several twins with one teacher and one architecture.

    Args:
        twins: the twins; the teacher's part is computed once.
        pairs: the number of pairs, of mixed lengths.
        seed: the seed that draws the pairs.
        data: the inputs to draw from, if the twins were trained on given data.
    """
    if not twins:
        return []
    first = twins[0]
    if any(twin.teacher is not first.teacher or twin.architecture != first.architecture for twin in twins):
        raise TracrError("the twins have different teachers or architectures", hint="call edge_auroc for each twin")
    sites, inputs = first.architecture.sites, inputs_of(first.teacher, data)
    teacher = teacher_of(first.teacher, sites, inputs)
    clean, corrupted = InterventionDraws(inputs, np.random.default_rng(seed)).pairs(whole("pairs", pairs, 1))
    lessons, effect = _patches(teacher, inputs.ids[clean], inputs.ids[corrupted], sites.coded[len(sites.nodes) :])
    examiner = Examiner(network_of(first.teacher, first.architecture), teacher)
    weights = {name: np.stack(arrays) for name, *arrays in _side_by_side(twins)}
    _, same = examiner.agreement(weights, lessons)
    names = [str(site) for site in sites.edges]
    moved, defined = (array.reshape(len(names), -1) for array in effect)
    return [_separation(names, moved, defined, ~one.reshape(len(names), -1)) for one in same]


def _side_by_side(twins: Sequence[TwinModel]) -> Iterator[tuple[Any, ...]]:
    """The name of each weight and its array in each twin."""
    for several in zip(*(twin.parameters.named() for twin in twins), strict=True):
        yield several[0][0], *(array for _, array in several)


def _patches(teacher: Teacher, clean: Array, corrupted: Array, edges: Array) -> tuple[Lesson, Effect]:
    """Every edge patched in every pair, at all positions: the teacher's answers and their effect, [edge * pair]."""
    total, (pairs, length) = len(edges) * len(clean), clean.shape
    parts = []
    for rows in batches(total, PATCHED.get(jax.default_backend(), MOST_PATCHED)):
        edge, pair = np.divmod(rows, pairs)
        everywhere, padded = np.ones((len(rows), length), dtype=bool), np.zeros(len(rows), dtype=bool)
        patch = Patch(edges[edge, 0], edges[edge, 1], everywhere, padded)
        parts.append(jax.tree.map(np.asarray, teacher.teach(clean[pair], corrupted[pair], patch)))
    lessons, effect = jax.tree.map(lambda *arrays: np.concatenate(arrays)[:total], *parts)
    return lessons, effect


def _separation(names: list[str], moved: Array, defined: Array, changed: Array) -> EdgeSeparation:
    """Compares needed and inert edges, from arrays [edge, pair]."""
    needed = ((moved >= CLEAR) & defined).any(axis=1)
    inert = ~(moved > 0).any(axis=1)
    shares = (changed & defined).sum(axis=1) / np.maximum(1, defined.sum(axis=1))
    high, low = (
        {names[edge]: float(shares[edge]) for edge in np.flatnonzero(kind).tolist()} for kind in (needed, inert)
    )
    undecided = tuple(names[edge] for edge in np.flatnonzero(~needed & ~inert).tolist())
    auroc = area_under_curve([*high.values()], [*low.values()])
    return EdgeSeparation(auroc, moved.shape[1], high, low, undecided)
