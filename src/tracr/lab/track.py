"""`Track`: what methods are asked for, and the scores of an answer."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EDGES", "TRACKS", "Track"]


@dataclass(frozen=True)
class Track:
    """A question to methods; `scores` are columns of the table of results."""

    name: str
    asks: str
    scores: tuple[str, ...]


EDGES = Track(
    "edges",
    "which edges of the model do the answers need? A number for every edge, or a set of edges",
    ("auroc", "average_precision", "precision_at_size", "exact", "cpr", "cmd"),
)
TRACKS = {track.name: track for track in (EDGES,)}
"""All tracks, by name."""
