"""Truth for pairs of inputs: which edges are needed alone, needed jointly, or inert.

An edge is patched (`patching.py`) with the writer's output on the corrupted input of each pair, or with 0 or a mean. A
set of edges *changes an answer* if, with all of them patched, the decoded output differs from the clean one at some
token of some pair. What is decided, exactly, on these pairs:

- **alone**: patching the edge changes an answer.
- **jointly**: the edge is not needed alone, and a set M of edges that are not needed alone is known such that patching
  M changes no answer, and patching M and the edge does.
- **inert**: all others. Patching one of them changes no answer, and patching all of them together changes none.

The search for jointly needed edges starts with all edges that are not needed alone. As long as patching the rest
changes an answer, a smallest part of it (no edge can be left out) is jointly needed, and leaves the rest. Then each
rest edge is exchanged for each edge of these parts. The search does not try all sets: an inert edge may be needed
jointly with a set that was not tried.

Edges that the model does not have are inert without a test: no weight of the reader meets a dimension that the writer
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.ground_truth.ablations import (
    Ablation,
    check_ablation,
    check_ablation_name,
    position_means,
    without_near_ties,
)
from tracr.ground_truth.data import FINEST, Granularity, check_granularity
from tracr.ground_truth.edge_keys import coarsened, key_of_edge
from tracr.ground_truth.input_pairs import TokenPair, read_pairs
from tracr.ground_truth.patching import EdgePatching, WritingPart, parts_of
from tracr.ground_truth.scores import EdgeKey
from tracr.ground_truth.scoring import EdgeTruth
from tracr.model.verification import differs
from tracr.runtime.outputs import Output
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.ground_truth.data import GroundTruth
    from tracr.ground_truth.edge_keys import Found
    from tracr.ground_truth.scores import EdgeScores

__all__ = ["PairTruth", "PairedTruth", "pair_truth"]

Array = NDArray[Any]
InputsOfPair = tuple[Sequence[Value], Sequence[Value]]


class PairedTruth(Protocol):
    """A ground truth that has a truth for pairs."""

    @property
    def granularities(self) -> tuple[Granularity, ...]:
        """Its granularities."""

    def candidates(self, granularity: Granularity = ...) -> tuple[EdgeKey, ...]:
        """All candidates."""

    def minimal(self, *, pairs: Iterable[TokenPair], ablation: Ablation, granularity: Granularity) -> PairTruth:
        """The truth for pairs."""


@dataclass(frozen=True, eq=False)
class PairTruth(EdgeTruth):
    """The candidates that are needed alone, needed jointly or inert, on given pairs under one kind of ablation.

    `sets` lists the smallest sets of jointly needed edges that were found: patching one of them changes an answer, and
    no longer does if any of its edges is left out. `skipped` counts the pairs on which the program raises. `undecided`
    edges are none of the three and are not scored: only twins have them (`tracr.natural.truth`). `caveat` says why this
    truth may not hold; it is empty unless the model is a twin that was not admitted.
    """

    truth: PairedTruth = field(repr=False)
    pairs: tuple[InputsOfPair, ...] = field(repr=False)
    skipped: int
    ablation: Ablation
    granularity: Granularity
    alone: tuple[EdgeKey, ...] = field(repr=False)
    jointly: tuple[EdgeKey, ...] = field(repr=False)
    inert: tuple[EdgeKey, ...] = field(repr=False)
    sets: tuple[tuple[EdgeKey, ...], ...] = field(repr=False)
    undecided: tuple[EdgeKey, ...] = field(default=(), repr=False)
    caveat: str = ""

    def __repr__(self) -> str:
        rest = f", {len(self.undecided)} undecided" if self.undecided else ""
        return (
            f"PairTruth({len(self.alone)} edges needed alone, {len(self.jointly)} jointly, {len(self.inert)} inert"
            f"{rest}; {self.ablation} ablation, {len(self.pairs)} pairs, granularity {self.granularity}"
            f"{'; ' if self.caveat else ''}{self.caveat})"
        )

    @property
    def granularities(self) -> tuple[Granularity, ...]:
        """The granularities of the ground truth."""
        return self.truth.granularities

    def candidates(self, granularity: Granularity | None = None) -> tuple[EdgeKey, ...]:
        """All candidates, by default at the granularity of this truth."""
        return self.truth.candidates(granularity or self.granularity)

    def at(self, granularity: Granularity) -> PairTruth:
        """The truth for the same pairs at another granularity, computed anew."""
        if granularity == self.granularity:
            return self
        return self.truth.minimal(pairs=self.pairs, ablation=self.ablation, granularity=granularity)

    def split(self, granularity: Granularity) -> tuple[tuple[EdgeKey, ...], tuple[EdgeKey, ...]]:
        """The edges needed alone, and the inert ones; edges needed jointly are not scored."""
        here = self.at(granularity)
        return here.alone, here.inert

    def score(self, found: Found, granularity: Granularity | None = None) -> EdgeScores:
        """The scores of found edges, needed alone against inert; by default at the granularity of this truth."""
        return super().score(found, granularity or self.granularity)


def pair_truth(
    truth: GroundTruth,
    pairs: Iterable[TokenPair],
    ablation: Ablation,
    granularity: Granularity,
    *,
    outputs: Sequence[Output] | None = None,
    activation: Callable[[Any], Any] | None = None,
) -> PairTruth:
    """Patch every edge of the model alone, then the others together.

    With `outputs`, only the answers of these outputs count. `activation` is the function of the model's neurons, if it
    is not ReLU; such a model is not the compiler's own, and the caller knows that it has no other edges.
    """
    check_granularity(granularity)
    _check_ablation(truth, ablation, activation)
    patching = _patching_of(truth, granularity, activation)
    runs = _PairRuns(truth, pairs, ablation, granularity, outputs or truth.model.outputs, patching)
    wired = runs.wired
    changes = runs.changes([[key] for key in wired])
    alone = {key for key, changed in zip(wired, changes, strict=True) if changed}
    sets = _needed_together(runs, [key for key in wired if key not in alone])
    together = {key for one in sets for key in one}
    candidates = truth.candidates(granularity)
    return PairTruth(
        truth,
        tuple(runs.pairs),
        runs.skipped,
        ablation,
        granularity,
        tuple(key for key in candidates if key in alone),
        tuple(key for key in candidates if key in together),
        tuple(key for key in candidates if key not in alone | together),
        tuple(sets),
    )


def _needed_together(runs: _PairRuns, rest: list[EdgeKey]) -> list[tuple[EdgeKey, ...]]:
    """Smallest sets of edges that change an answer together; every edge of a set decides."""
    sets: list[tuple[EdgeKey, ...]] = []
    while found := _among(runs, rest) or _exchanged(runs, sets, rest):
        sets.append(found)
        rest = [key for key in rest if key not in found]
    return sets


def _among(runs: _PairRuns, rest: list[EdgeKey]) -> tuple[EdgeKey, ...]:
    """A smallest set among the rest, if patching all of the rest changes an answer."""
    return _smallest(runs, rest) if rest and runs.changes([rest])[0] else ()


def _exchanged(runs: _PairRuns, sets: Sequence[tuple[EdgeKey, ...]], rest: Sequence[EdgeKey]) -> tuple[EdgeKey, ...]:
    """A smallest set that comes from a known one if one of its edges is exchanged for one of the rest."""
    trials = [(*(kept for kept in one if kept != gone), key) for one in sets for gone in one for key in rest]
    changed = [trial for trial, does in zip(trials, runs.changes(trials), strict=True) if does]
    smallest = (_smallest(runs, trial) for trial in changed)
    return next((one for one in smallest if not set(one).isdisjoint(rest)), ())


def _smallest(runs: _PairRuns, edges: Sequence[EdgeKey]) -> tuple[EdgeKey, ...]:
    """A part of a set of edges that changes an answer, but not without any one of its edges."""
    kept, done = list(edges), False
    while not done:
        done = True
        for key in list(kept):
            fewer = [one for one in kept if one != key]
            if runs.changes([fewer])[0]:
                kept, done = fewer, False
    return tuple(kept)


def _check_ablation(truth: GroundTruth, ablation: str, activation: object) -> None:
    """Refuse an unknown ablation, and models that are not the compiler's own; those with an activation are known."""
    if activation is None:
        check_ablation(truth, ablation)
    check_ablation_name(ablation)


def _patching_of(truth: GroundTruth, granularity: Granularity, activation: Callable[[Any], Any] | None) -> EdgePatching:
    """The edges of a model that can be patched: at the finest granularity between groups of neurons."""
    model = truth.model
    groups = tuple(
        WritingPart(node.id, node.layer, node.head, node.neurons) for node in truth.nodes() if node.layer is not None
    )
    parts = groups if granularity == FINEST else parts_of(model.parameters)
    return EdgePatching(model.cast(np.float32), model.options.causal, parts, model.norm, activation)


class _PairRuns:
    """The model on the clean inputs of pairs, with edges patched."""

    def __init__(
        self,
        truth: GroundTruth,
        pairs: Iterable[TokenPair],
        ablation: Ablation,
        granularity: Granularity,
        outputs: Sequence[Output],
        patching: EdgePatching,
    ) -> None:
        self.outputs, self.patching = outputs, patching
        self.pairs, self.skipped, clean, corrupted, lengths = _encoded(truth, pairs)
        wired = dict.fromkeys(coarsened(key_of_edge(edge), granularity) for edge in truth.edges())
        self.fine: dict[EdgeKey, list[EdgeKey]] = {key: [] for key in wired}
        for key in self.patching.candidates:
            if (coarse := coarsened(key, granularity)) in wired:
                self.fine[coarse].append(key)
        self.wired = list(wired)
        places = np.arange(clean.shape[1])
        self.token = (places >= 1) & (places <= lengths[:, None])
        self.clean, other = self.patching.clean(clean), self.patching.clean(corrupted)
        self.expected = self._codes(self.clean.logits)
        if not self._differs(other.logits).any():
            raise InputError(
                "the answers to the clean and the corrupted inputs are the same in all pairs, so no edge is needed",
                hint="use pairs whose answers differ; for a program with a constant output there are none",
            )
        self.instead = {name: self._instead(ablation, name, other.written[name]) for name in other.written}

    def _instead(self, ablation: Ablation, name: str, corrupted: Array) -> Array:
        if ablation == "resample":
            return corrupted
        written = self.clean.written[name]
        return np.zeros_like(written) if ablation == "zero" else position_means(written, self.token)

    def changes(self, patches: Sequence[Sequence[EdgeKey]]) -> list[bool]:
        """Whether patching each set of edges changes an answer."""
        if not patches:
            return []
        fine = [[key for coarse in patch for key in self.fine[coarse]] for patch in patches]
        found = self.patching.run(self.clean, self.instead, fine, self._differs)
        return [bool(patch.any()) for patch in found]

    def _codes(self, logits: Array) -> list[Array]:
        rounded = without_near_ties(self.outputs, logits)
        return [output.codes(rounded) for output in self.outputs]

    def _differs(self, logits: Array) -> Array:
        """Whether outputs differ from the clean ones, at tokens: [..., pair, position]."""
        found = self._codes(logits)
        apart = [differs(o.domain, want, got) for o, want, got in zip(self.outputs, self.expected, found, strict=True)]
        return np.asarray(np.any(apart, axis=0) & self.token)


def _encoded(truth: GroundTruth, pairs: Iterable[TokenPair]) -> tuple[list[InputsOfPair], int, Array, Array, Array]:
    """The pairs on which the program does not raise, how many others there are, their ids, and their lengths."""
    vocabulary, program = truth.model.vocabulary, truth.model.program
    clean, corrupted = read_pairs(pairs)
    ids, _, real = vocabulary.encode([*clean, *corrupted])
    tokens = [vocabulary.decode(row[1 : n + 1]) for row, n in zip(ids.tolist(), real, strict=True)]
    lengths = np.array(real).reshape(2, -1)
    errors = evaluate_batch(program, tokens).errors.reshape(2, -1)
    fine = ~errors.any(axis=0)
    if not fine.any() or (lengths[0] != lengths[1]).any():
        raise InputError(
            "the program raises on every pair" if not fine.any() else "the inputs of a pair differ in their PAD",
            hint="use other pairs",
        )
    kept = [(clean[place], corrupted[place]) for place in np.flatnonzero(fine).tolist()]
    return kept, len(clean) - len(kept), ids[: len(clean)][fine], ids[len(clean) :][fine], lengths[0][fine]
