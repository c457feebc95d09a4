"""The truth about one output of a model that has several: the edges of the other outputs are inert."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tracr.ground_truth.pair_truth import PairTruth, pair_truth
from tracr.ground_truth.scoring import QKV, EdgeTruth

if TYPE_CHECKING:
    from tracr.ground_truth.ablations import Ablation
    from tracr.ground_truth.data import Edge, Granularity, GroundTruth
    from tracr.ground_truth.input_pairs import TokenPair
    from tracr.ground_truth.scores import EdgeKey
    from tracr.runtime.outputs import Output

__all__ = ["OutputTruth"]


@dataclass(frozen=True, eq=False)
class OutputTruth(EdgeTruth):
    """The ground truth of a compiled model, for one of its outputs."""

    whole: GroundTruth
    output: Output = field(repr=False)

    @property
    def granularities(self) -> tuple[Granularity, ...]:
        """Those of the model."""
        return self.whole.granularities

    def candidates(self, granularity: Granularity = QKV) -> tuple[EdgeKey, ...]:
        """All candidates of the model."""
        return self.whole.candidates(granularity)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges from which a path leads to a variable of this output at the unembedding."""
        edges = self.whole.edges()
        found = {edge for edge in edges if edge.target == "unembed" and edge.variable == self.output.name}
        nodes, waiting = set[str](), {edge.source for edge in found}
        while waiting:
            nodes |= waiting
            waiting = {edge.source for edge in edges if edge.target in waiting} - nodes
        return tuple(edge for edge in edges if edge in found or edge.target in nodes)

    def split(self, granularity: Granularity) -> tuple[tuple[EdgeKey, ...], tuple[EdgeKey, ...]]:
        """The candidates that lead to this output, and the others."""
        return self.whole.split_by(self.edges, granularity)

    def minimal(
        self, *, pairs: Iterable[TokenPair], ablation: Ablation = "resample", granularity: Granularity = QKV
    ) -> PairTruth:
        """As `GroundTruth.minimal` with pairs; only the answers of this output count."""
        found = pair_truth(self.whole, pairs, ablation, granularity, outputs=[self.output])
        return replace(found, truth=self)
