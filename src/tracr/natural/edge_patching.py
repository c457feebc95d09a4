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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.arguments import whole
from tracr.errors import TracrError
from tracr.ground_truth.scores import area_under_curve
from tracr.natural.answers import Answer, Answers
from tracr.natural.lessons import AT_ONCE, CLEAR, MOST_AT_ONCE, InputPairs
from tracr.natural.network import Patch, Tree, TwinNetwork, network_of
from tracr.natural.teacher import Teacher, inputs_of, teacher_of

if TYPE_CHECKING:
    from tracr.natural.twin_model import TwinModel

__all__ = ["EdgeSeparation", "TwinPatching", "edge_auroc", "edge_aurocs"]

Array = NDArray[Any]
EVERYWHERE = -1  # patches act at all positions


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
    clean, corrupted, _ = InputPairs(inputs, np.random.default_rng(seed)).draw(whole("pairs", pairs, 1), 0, 0)
    edges = sites.coded[len(sites.nodes) :]
    moved, defined = _of_teacher(teacher, clean, corrupted, edges)
    names = [str(site) for site in sites.edges]
    patching = TwinPatching(network_of(first.teacher, first.architecture), teacher.answers)
    return [_separation(names, moved, defined, patching.changed(twin, clean, corrupted, edges)) for twin in twins]


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


def _of_teacher(teacher: Teacher, clean: Array, corrupted: Array, edges: Array) -> tuple[Array, Array]:
    """How far the teacher's answer moves, and whether there is a true answer, [edge, pair].

    An edge that the teacher does not have changes nothing.
    """
    wired = np.flatnonzero(teacher.wired[-len(edges) :])
    moved = np.zeros((len(edges), len(clean)), dtype=np.float32)
    defined = np.ones(moved.shape, dtype=bool)
    teach = jax.jit(lambda *given: teacher.teach(*given)[-2:])

    def run(patch: Patch, pair: Array) -> Any:
        return teach(clean[pair], corrupted[pair], patch)

    moved[wired], defined[wired] = _for_all(edges[wired], len(clean), run)
    return moved, defined


@dataclass(frozen=True, eq=False)
class TwinPatching:
    """Patches the edges of twins with one architecture."""

    network: TwinNetwork
    answers: Answers

    def changed(self, twin: TwinModel, clean: Array, corrupted: Array, edges: Array) -> Array:
        """Whether the twin's answer changes at some token, [edge, pair]."""
        weights: Tree = {name: jnp.asarray(array) for name, array in twin.parameters.named()}
        before, change = _BEFORE(self, weights, clean, corrupted)

        def run(patch: Patch, pair: Array) -> Any:
            return (_AFTER(self, weights, clean, before, change, patch, pair),)

        return _for_all(edges, len(clean), run)[0]

    def before(self, weights: Tree, clean: Any, corrupted: Any) -> tuple[Answer, Any]:
        """The answers on the clean inputs, and how each writer's output changes [pair, writer, position, d_model]."""
        padded = jnp.zeros(len(clean), dtype=bool)
        logits, written, _ = self.network.writes(weights, clean, padded)
        return self.answers.read(logits), self.network.writes(weights, corrupted, padded)[1] - written

    def after(self, weights: Tree, clean: Any, before: Answer, change: Any, patch: Patch, pair: Any) -> Any:
        """Whether an answer changes at some token of each patched pair."""
        ids = clean[pair]
        logits, _ = self.network.patched(weights, ids, patch, change[pair, patch.writer])
        base = Answer(before.codes[pair], before.numbers[pair])
        token = (ids != self.network.pad).at[:, 0].set(False)
        return (token & (self.answers.apart(base, self.answers.read(logits)) > 1)).any(axis=1)


_BEFORE = jax.jit(TwinPatching.before, static_argnums=0)
_AFTER = jax.jit(TwinPatching.after, static_argnums=0)


def _for_all(edges: Array, pairs: int, run: Callable[[Patch, Array], Sequence[Any]]) -> list[Array]:
    """The results [edge, pair] of `run` for all edges with all pairs, in batches of one size."""
    at_once = AT_ONCE.get(jax.default_backend(), MOST_AT_ONCE)
    total = len(edges) * pairs
    parts = []
    for first in range(0, total, at_once):
        row = np.minimum(np.arange(first, first + at_once), total - 1)  # one shape, so one compilation
        edge, pair = row // pairs, row % pairs
        everywhere, padded = np.full(len(row), EVERYWHERE, np.int32), np.zeros(len(row), dtype=bool)
        patch = Patch(edges[edge, 0], edges[edge, 1], everywhere, padded)
        parts.append([np.asarray(result) for result in run(patch, pair)])
    found = [np.concatenate(several)[:total] for several in zip(*parts, strict=True)]
    return [result.reshape(len(edges), pairs) for result in found]
