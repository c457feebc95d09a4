"""The ground truth of a learned model: the compiled model's nodes and edges, with its own neurons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracr.ground_truth.data import FINEST, Granularity, HookPlace

if TYPE_CHECKING:
    from tracr.ground_truth.data import Edge, GroundTruth, ModelNode

__all__ = ["LearnedTruth"]


@dataclass(frozen=True, eq=False)
class LearnedTruth:
    """Which parts of a learned model read what from which; true by construction.

    A part has no weights into dimensions that the compiled part does not read, so there are no other edges. The slots
    of edges and nodes are rows of `directions`. `neurons` has the neurons (from, up to) of each group in its layer.
    """

    compiled: GroundTruth
    neurons: Mapping[str, tuple[int, int]]

    def nodes(self, granularity: Granularity = FINEST) -> tuple[ModelNode, ...]:
        """The nodes, as in `GroundTruth.nodes`."""
        return tuple(
            replace(
                node,
                neurons=self.neurons.get(node.id, node.neurons),
                output=self._place(node.output, node.id),
                inputs=tuple((name, self._place(place, node.id)) for name, place in node.inputs),
            )
            for node in self.compiled.nodes(granularity)
        )

    def edges(self, granularity: Granularity = FINEST) -> tuple[Edge, ...]:
        """The edges, as in `GroundTruth.edges`."""
        return tuple(
            replace(
                edge,
                source_place=self._place(edge.source_place, edge.source),
                target_place=self._place(edge.target_place, edge.target),
            )
            for edge in self.compiled.edges(granularity)
        )

    def _place(self, place: HookPlace, node: str) -> HookPlace:
        return place if place.neurons is None else replace(place, neurons=self.neurons[node])

    def minimal(
        self, *, data: Sequence[Sequence[Any]], ablation: Any = "resample", seed: int = 0
    ) -> tuple[tuple[str, str, str, str], ...]:
        """The edges (source, target, input, variable) that the compiled model needs on `data`.

        See `GroundTruth.minimal`. It was measured on the compiled model, not on this one.
        """
        found = self.compiled.minimal(data=data, ablation=ablation, seed=seed)
        return tuple((edge.source, edge.target, edge.input, edge.variable) for edge in found.edges())

    def __repr__(self) -> str:
        return f"LearnedTruth({len(self.nodes())} nodes, {len(self.edges())} edges)"

    def show(self) -> str:
        """One line per node with what it writes, then one per edge."""
        nodes = [f"{node.id}: writes {', '.join(node.variables) or 'the outputs'}" for node in self.nodes()]
        return "\n".join([*nodes, *map(str, self.edges())])
