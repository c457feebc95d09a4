"""The ground truth of a learned model: the compiled model's nodes and edges, with its own neurons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from tracr.errors import TracrError
from tracr.ground_truth.data import FINEST, Granularity, HookPlace
from tracr.ground_truth.scoring import QKV, EdgeTruth

if TYPE_CHECKING:
    from tracr.ground_truth.ablations import Ablation
    from tracr.ground_truth.data import Edge, GroundTruth, ModelNode
    from tracr.ground_truth.input_pairs import TokenPair
    from tracr.ground_truth.pair_truth import PairTruth
    from tracr.ground_truth.scores import EdgeKey

__all__ = ["LearnedTruth"]


@dataclass(frozen=True, eq=False)
class LearnedTruth(EdgeTruth):
    """Which parts of a learned model read what from which; true by construction.

    A part has no weights into dimensions that the compiled part does not read, so there are no other edges. The slots
    of edges and nodes are rows of `directions`. `neurons` has the neurons (from, up to) of each group in its layer.
    """

    compiled: GroundTruth
    neurons: Mapping[str, tuple[int, int]]
    model: Any = field(repr=False)
    """The learned model."""

    def nodes(self, granularity: Granularity = FINEST) -> tuple[ModelNode, ...]:
        """The nodes, as in `GroundTruth.nodes`."""
        return self._own.nodes(granularity)

    def edges(self, granularity: Granularity = FINEST) -> tuple[Edge, ...]:
        """The edges, as in `GroundTruth.edges`."""
        return self._own.edges(granularity)

    @cached_property
    def _own(self) -> GroundTruth:
        """The compiled model's ground truth, with other neurons."""
        nodes = tuple(map(self._node, self.compiled.nodes()))
        edges = tuple(
            replace(
                edge,
                source_place=self._place(edge.source_place, edge.source),
                target_place=self._place(edge.target_place, edge.target),
            )
            for edge in self.compiled.edges()
        )
        return replace(self.compiled, model=self.model, _nodes=nodes, _edges=edges)

    def _node(self, node: ModelNode) -> ModelNode:
        if node.id not in self.neurons:
            return node
        start, stop = self.neurons[node.id]
        rest = node.computes.partition(" of layer ")[2].replace(" writes ", " write ", 1)
        return replace(
            node,
            neurons=(start, stop),
            computes=f"Neurons {start} to {stop - 1} of layer {rest}",
            output=self._place(node.output, node.id),
            inputs=tuple((name, self._place(place, node.id)) for name, place in node.inputs),
        )

    def _place(self, place: HookPlace, node: str) -> HookPlace:
        return place if place.neurons is None else replace(place, neurons=self.neurons[node])

    @property
    def granularities(self) -> tuple[Granularity, ...]:
        """All granularities."""
        return self._own.granularities

    def candidates(self, granularity: Granularity = QKV) -> tuple[EdgeKey, ...]:
        """All pairs (writer, reader input), as in `GroundTruth.candidates`."""
        return self._own.candidates(granularity)

    def split(self, granularity: Granularity) -> tuple[tuple[EdgeKey, ...], tuple[EdgeKey, ...]]:
        """The candidates that are edges of the model, and the others."""
        return self._own.split(granularity)

    @overload
    def minimal(
        self, *, data: Sequence[Sequence[Any]], ablation: Ablation = "resample", seed: int = 0
    ) -> tuple[tuple[str, str, str, str], ...]: ...

    @overload
    def minimal(
        self, *, pairs: Iterable[TokenPair], ablation: Ablation = "resample", granularity: Granularity = QKV
    ) -> PairTruth: ...

    def minimal(
        self,
        *,
        data: Sequence[Sequence[Any]] | None = None,
        pairs: Iterable[TokenPair] | None = None,
        ablation: Ablation = "resample",
        seed: int = 0,
        granularity: Granularity = QKV,
    ) -> tuple[tuple[str, str, str, str], ...] | PairTruth:
        """The edges that matter: see `GroundTruth.minimal`.

        With `data`, the edges (source, target, input, variable) that the compiled model needs, measured on that model.
        With `pairs`, the truth for each candidate, measured on this model: its edges are patched; it has no others.
        """
        if pairs is not None and data is None:
            from tracr.ground_truth.pair_truth import pair_truth  # imported only when used

            return pair_truth(self._own, pairs, ablation, granularity, activation=self.model.activation)
        if data is None or pairs is not None:
            raise TracrError("minimal takes data= or pairs=", hint="minimal(pairs=[(clean, corrupted)])")
        found = self.compiled.minimal(data=data, ablation=ablation, seed=seed)
        return tuple((edge.source, edge.target, edge.input, edge.variable) for edge in found.edges())

    def __repr__(self) -> str:
        return f"LearnedTruth({len(self.nodes())} nodes, {len(self.edges())} edges)"

    def show(self) -> str:
        """What every node computes, then one line per edge."""
        return "\n".join([*(f"{node.id}: {node.computes}" for node in self.nodes()), *map(str, self.edges())])
