"""Scores edges that a method found against a truth: any ground truth, minimal circuit, or truth for pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracr.ground_truth.scores import EdgeKey, EdgeScores, score_edges

if TYPE_CHECKING:
    from tracr.ground_truth.data import Granularity
    from tracr.ground_truth.edge_keys import Found

__all__ = ["QKV", "EdgeTruth"]

QKV: Granularity = "qkv"


class EdgeTruth(ABC):
    """A truth about edges: which of the candidates are edges of the circuit, and which are inert."""

    @property
    @abstractmethod
    def granularities(self) -> tuple[Granularity, ...]:
        """The granularities that edges can be compared at, from coarse to fine."""

    @abstractmethod
    def candidates(self, granularity: Granularity = QKV) -> tuple[EdgeKey, ...]:
        """All pairs (writer, reader input) that the architecture allows, wired or not; variables are merged.

        Token and position embedding are one writer, `embed`.
        """

    @abstractmethod
    def split(self, granularity: Granularity) -> tuple[Sequence[EdgeKey], Sequence[EdgeKey]]:
        """The candidates that a method must find, and those it must not find."""

    def score(self, found: Found, granularity: Granularity = QKV) -> EdgeScores:
        """The scores of the edges that a method found: docs/ground-truth.md, "Scores".

        Args:
            found: numbers or booleans for edges, or a set of edges. An edge is a pair such as
                `("embed", "blocks.0.attn.0.q")`, a string such as `"embed->blocks.0.attn.0.q"`, or an edge of a ground
                truth. Edges of a finer granularity are merged; the largest number counts.
            granularity: the granularity at which edges are compared.
        """
        needed, inert = self.split(granularity)
        numbers, as_set = self.read(found, granularity)
        return score_edges(numbers, needed, inert, as_set=as_set)

    def read(self, found: Found, granularity: Granularity = QKV) -> tuple[dict[EdgeKey, float], bool]:
        """The number of each candidate that has one, and whether `found` is a set: see `score`."""
        from tracr.ground_truth.edge_keys import coarsened, read_found  # imported only when used

        finer = self.granularities[self.granularities.index(granularity) :]
        known = {key: coarsened(key, granularity) for one in finer for key in self.candidates(one)}
        return read_found(found, known)
