"""The edges at the top of a ranking, and those at its border: with equal numbers, of which not all fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["TopEdges", "top_edges"]


@dataclass(frozen=True)
class TopEdges:
    """The top of a ranking: as many edges as are needed, of those that are needed alone or inert.

    Args:
        jointly: the edges needed jointly whose numbers reach the smallest number at the top.
        border: the edges with that number, if not all of them fit.
        share: the share of the border that fits: the probability that an edge there is found if ties are broken at
            random.
    """

    jointly: tuple[str, ...] = ()
    border: frozenset[str] = frozenset()
    share: float = 1.0


def top_edges(row: Mapping[str, Any]) -> TopEdges:
    """The top of the ranking of a row; without numbers nothing is said about it."""
    numbered = _numbered(row)
    ranked = sorted((x for _, kind, x in numbered if kind != "jointly"), reverse=True)
    size = len(row["truth"] or ()) if row["as_set"] else sum(kind == "alone" for kind in row["truth"] or ())
    least, share = _border(ranked, size)
    return TopEdges(
        tuple(edge for edge, kind, x in numbered if kind == "jointly" and x >= least),
        frozenset(edge for edge, _, x in numbered if x == least and share < 1),
        share,
    )


def _numbered(row: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """The edges that have numbers, with their kinds."""
    columns = [row[name] or () for name in ("edges", "truth", "numbers")]
    if len(columns[1]) != len(columns[2]):
        return []
    return [(edge, kind, x) for edge, kind, x in zip(*columns, strict=True) if x is not None]


def _border(ranked: Sequence[float], size: int) -> tuple[float, float]:
    """The smallest of the `size` largest numbers, and the share of those equal to it that fits.

    >>> _border([3, 2, 2, 2], 2), _border([3, 2], 4), _border([3, 2], 0)
    ((2, 0.3333333333333333), (-inf, 1.0), (inf, 1.0))
    """
    if not size:
        return math.inf, 1.0
    if len(ranked) < size:
        return -math.inf, 1.0
    least = ranked[size - 1]
    return least, (size - sum(x > least for x in ranked)) / ranked.count(least)
