"""Finds a minimal circuit of a model: ablates edges until every further one changes an output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tracr.ground_truth.ablations import Ablation, Ablations
from tracr.ground_truth.data import FINEST, Edge, Granularity, GroundTruth, dump, edge_json
from tracr.ground_truth.scores import EdgeKey
from tracr.ground_truth.scoring import QKV, EdgeTruth
from tracr.nearness import ANSWER, nearly_equal
from tracr.threads import blas_threads
from tracr.values import Value

__all__ = ["Inert", "MinimalCircuit", "Reason", "ablate", "minimal"]

Reason = Literal["constant", "bos_or_pad", "saturated", "absorbed", "redundant"]
FORMAT, VERSION = "tracr minimal circuit", 1

Array = NDArray[Any]


@dataclass(frozen=True)
class Inert:
    """An edge whose ablation alone changes no output, and the reason. docs/ground-truth.md lists the reasons."""

    edge: Edge
    reason: Reason


@dataclass(frozen=True, eq=False)
class MinimalCircuit(EdgeTruth):
    """A minimal circuit: the edges left when no further edge can be ablated without changing an output on the data.

    `inert` lists the edges, inside and outside the circuit, whose ablation alone changes no output. `skipped` counts
    the inputs on which the program raises.
    """

    truth: GroundTruth = field(repr=False)
    ablation: Ablation
    seed: int
    inputs: int
    skipped: int
    inside: tuple[Edge, ...] = field(repr=False)
    outside: tuple[Edge, ...] = field(repr=False)
    inert: tuple[Inert, ...] = field(repr=False)

    def __repr__(self) -> str:
        total = len(self.inside) + len(self.outside)
        return f"MinimalCircuit({len(self.inside)} of {total} edges, {self.ablation} ablation, {self.inputs} inputs)"

    def edges(self, granularity: Granularity = FINEST) -> tuple[Edge, ...]:
        """The edges of the circuit; a coarse edge belongs to it if one of its fine edges does."""
        return self.truth.coarsen(self.inside, granularity)

    @property
    def granularities(self) -> tuple[Granularity, ...]:
        """All granularities."""
        return self.truth.granularities

    def candidates(self, granularity: Granularity = QKV) -> tuple[EdgeKey, ...]:
        """All candidates of the ground truth."""
        return self.truth.candidates(granularity)

    def split(self, granularity: Granularity) -> tuple[tuple[EdgeKey, ...], tuple[EdgeKey, ...]]:
        """The candidates that contain an edge of the circuit, and the others."""
        return self.truth.split_by(self.inside, granularity)

    def show(self) -> str:
        """One line per edge."""
        reasons = {str(inert.edge): f"  (inert: {inert.reason})" for inert in self.inert}
        lines = [f"{self!r}"]
        lines += [f"  {edge}{reasons.get(str(edge), '')}" for edge in self.inside]
        lines += ["outside:", *(f"  {edge}{reasons.get(str(edge), '')}" for edge in self.outside)]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The circuit as JSON (docs/ground-truth.md); the same text for the same model, data and seed."""
        return dump(
            {
                "format": FORMAT,
                "version": VERSION,
                "ablation": self.ablation,
                "seed": self.seed,
                "inputs": self.inputs,
                "skipped": self.skipped,
                "inside": [edge_json(edge) for edge in self.inside],
                "outside": [edge_json(edge) for edge in self.outside],
                "inert": [{"edge": edge_json(inert.edge), "reason": inert.reason} for inert in self.inert],
            }
        )


def minimal(truth: GroundTruth, data: Sequence[Sequence[Value]], ablation: Ablation, seed: int) -> MinimalCircuit:
    """Ablate edges one by one, from the output backwards, as long as no output changes.

    An edge that was needed can become unnecessary once others are ablated. The search is therefore repeated until no
    further edge can be ablated.
    """
    with blas_threads(1):
        runs = Ablations(truth, data, ablation, seed)
        outside = _remove(runs)
        found = {edge: _reason(runs, edge) for edge in range(len(runs.edges))}
    inert = tuple(
        Inert(runs.edges[edge], reason if edge in outside else "redundant")
        for edge, reason in found.items()
        if reason is not None
    )
    kept = tuple(edge for number, edge in enumerate(runs.edges) if number not in outside)
    gone = tuple(edge for number, edge in enumerate(runs.edges) if number in outside)
    return MinimalCircuit(truth, ablation, seed, len(runs.ids), len(data) - len(runs.ids), kept, gone, inert)


def ablate(
    truth: GroundTruth, edges: Iterable[Edge], data: Sequence[Sequence[Value]], ablation: Ablation, seed: int
) -> list[Any]:
    """The outputs with these edges ablated; `None` for inputs on which the program raises."""
    with blas_threads(1):
        runs = Ablations(truth, data, ablation, seed)
        stream = runs.run(frozenset(truth.finest(edges)), runs.clean)
    rows = truth.model.decode(runs.logits(stream), runs.given, runs.real)
    result: list[Any] = [None] * len(data)
    for place, row in zip(runs.kept, rows, strict=True):
        result[place] = row
    return result


def _remove(runs: Ablations) -> frozenset[int]:
    """A maximal set of edges that can be ablated together: no further edge can be added."""
    outside: frozenset[int] = frozenset()
    stream = runs.clean
    leaving = {node.id: 0 for node in runs.nodes.values()}
    for edge in runs.edges:
        leaving[edge.source] += 1
    done = False
    while not done:
        done = True
        for number in reversed(range(len(runs.edges))):
            if number in outside:
                continue
            edge = runs.edges[number]
            unheard = edge.target != "unembed" and leaving[edge.target] == 0
            if not unheard and not np.array_equal(runs.carried(stream, number), runs.instead(number)):
                trial = runs.run(outside | {number}, stream, runs.layer(edge))
                if runs.changed(trial):
                    continue
                stream = trial
            outside, done = outside | {number}, False
            leaving[edge.source] -= 1
    return outside


def _reason(runs: Ablations, number: int) -> Reason | None:
    """Why ablating one edge alone changes no output; `None` if it changes one."""
    edge = runs.edges[number]
    held, put = runs.carried(runs.clean, number), runs.instead(number)
    if np.array_equal(held, put):
        return "constant"
    alone = runs.run(frozenset({number}), runs.clean, runs.layer(edge))
    if runs.changed(alone):
        return None
    apart = _apart(held, put)
    if not apart.any():
        return "constant"
    if not (apart & runs.token).any():
        return "bos_or_pad"
    reader = runs.nodes[edge.target]
    written = _apart(runs.written(alone, reader), runs.written(runs.clean, reader))
    return "absorbed" if (written & runs.token).any() else "saturated"


def _apart(first: Array, second: Array) -> NDArray[np.bool_]:
    """The positions at which two activations [input, position, slot] differ."""
    return np.asarray((~nearly_equal(first, second, ANSWER)).any(axis=-1))
