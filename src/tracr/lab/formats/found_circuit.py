"""A circuit that a method found: scores of edges, and the edges it chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tracr.errors import FormatError, InputError
from tracr.ground_truth.edge_keys import as_text
from tracr.ground_truth.scores import EdgeKey

__all__ = ["By", "FoundCircuit", "largest"]

By = Literal["score", "in_graph"]


@dataclass(frozen=True)
class FoundCircuit:
    """Edges with finite scores, and the edges that are in the circuit; `None` if the file does not say which are.

    `absolute`: the tool that writes this format ranks edges by the absolute value of their scores.
    """

    scores: Mapping[EdgeKey, float] = field(default_factory=dict)
    chosen: frozenset[EdgeKey] | None = None
    absolute: bool = False

    def __post_init__(self) -> None:
        for edge, score in self.scores.items():
            if not isinstance(score, int | float | np.number) or not np.isfinite(score):
                raise InputError(f"the edge {as_text(edge)} has the score {score!r}", hint="leave the edge out")

    def __repr__(self) -> str:
        inside = "" if self.chosen is None else f", {len(self.chosen)} edges in the circuit"
        return f"FoundCircuit({len(self.scores)} scores{inside})"

    @property
    def edges(self) -> tuple[EdgeKey, ...]:
        """All edges that have a score or are in the circuit."""
        return tuple(dict.fromkeys([*self.scores, *sorted(self.chosen or ())]))

    @property
    def flat(self) -> bool:
        """Whether there are several scores and all are equal, so that they rank nothing."""
        return len(self.scores) > 1 and len({*map(self._rank, self.scores.values())}) == 1

    def _rank(self, score: float) -> float:
        return abs(score) if self.absolute else score

    def found(self, by: By | None = None, *, absolute: bool | None = None) -> dict[EdgeKey, float] | frozenset[EdgeKey]:
        """What `truth.score` takes: the scores, or with `by="in_graph"` the set of edges in the circuit.

        Args:
            by: by default the scores, if there are any.
            absolute: rank by absolute value; by default as the tool does that writes the format.

        >>> circuit = FoundCircuit({("embed", "unembed"): -2.0}, absolute=True)
        >>> circuit.found()
        {('embed', 'unembed'): 2.0}
        """
        if by not in (None, "score", "in_graph"):
            raise InputError(f"edges are found by score or in_graph, not by {by!r}", hint='by="score"')
        if by == "in_graph" or (by is None and not self.scores and self.chosen is not None):
            if self.chosen is None:
                raise FormatError("the circuit does not say which edges are in it", hint="score it by its scores")
            return self.chosen
        if by == "score" and not self.scores:
            raise FormatError("the circuit has no scores", hint="score it by in_graph")
        size = abs if (self.absolute if absolute is None else absolute) else float
        return {edge: float(size(score)) for edge, score in self.scores.items()}


def largest(scores: dict[EdgeKey, float], edge: EdgeKey, score: float, absolute: bool) -> None:
    """Add a score; of several names that mean one edge (token and position embedding) the largest score counts."""
    size = abs if absolute else float
    if edge not in scores or size(score) > size(scores[edge]):
        scores[edge] = score
