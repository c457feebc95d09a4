"""What the laboratory asks of a table, answered with intervals over cases and seeds.

1. Which method finds the circuit, on which realisation? `leads`, `changes`
2. Does faithfulness measure truth? `correlations`
3. How much do answers vary between seeds of one mechanism? `seed_spreads`
4. Are decoys reported, and edges that are needed jointly? `reported_parts`
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tracr.lab.bootstrap import Estimate, hierarchical_bootstrap
from tracr.lab.reporting.rank_correlation import Point, rank_correlation, spearman
from tracr.lab.reporting.results_table import ResultRow, ResultTable

__all__ = [
    "BASE",
    "EVERYWHERE",
    "Change",
    "FaithfulnessTruth",
    "Lead",
    "ReportedParts",
    "SeedSpread",
    "changes",
    "correlations",
    "leads",
    "reported_parts",
    "seed_spreads",
]

BASE = "compiled"
EVERYWHERE = "all realisations"
DIGITS = 9  # scores that differ by rounding have one rank


def _mean(values: Iterable[tuple[str, float | None]]) -> Estimate | None:
    """The mean over cases of the defined values, given with their cases."""
    by_case: dict[str, list[float]] = defaultdict(list)
    for case, value in values:
        if value is not None:
            by_case[case].append(value)
    return hierarchical_bootstrap(by_case) if by_case else None


def _difference(ours: Sequence[ResultRow], theirs: Sequence[ResultRow], score: str) -> Estimate | None:
    """The mean difference of a score between rows of the same case and seed."""
    other = {(row.case, row.seed): row.scores[score] for row in theirs}
    pairs = [(row.case, row.scores[score], other.get((row.case, row.seed))) for row in ours]
    return _mean((case, None if x is None or y is None else x - y) for case, x, y in pairs)


def _scored(table: ResultTable) -> dict[tuple[str, str], list[ResultRow]]:
    return {key: [row for row in rows if row.scored] for key, rows in table.cells.items()}


@dataclass(frozen=True)
class Lead:
    """The method with the largest mean of a score on a realisation, and how far it is ahead of the next."""

    realisation: str
    score: str
    methods: int
    best: str
    mean: Estimate
    next: str | None
    ahead: Estimate | None
    """The mean difference on the same cases and seeds."""


def leads(table: ResultTable, score: str = "auroc") -> list[Lead]:
    """The leading method on each realisation; on none if no method has the score there."""
    scored, found = _scored(table), []
    for realisation in table.realisations:
        means = {
            method: mean
            for (place, method), one in table.standings.items()
            if place == realisation and (mean := one.scores[score]) is not None
        }
        order = sorted(means, key=lambda method: -means[method].mean)
        if order:
            best, second = order[0], order[1] if len(order) > 1 else None
            ahead = _difference(scored[realisation, best], scored[realisation, second], score) if second else None
            found.append(Lead(realisation, score, len(order), best, means[best], second, ahead))
    return found


@dataclass(frozen=True)
class Change:
    """How the score of a method differs between a realisation and the compiled models of the same cases and seeds."""

    realisation: str
    method: str
    score: str
    change: Estimate | None


def changes(table: ResultTable, score: str = "auroc") -> list[Change]:
    """The change for each realisation but `compiled` and each method; none without compiled models."""
    scored = _scored(table)
    return [
        Change(realisation, method, score, _difference(rows, scored[BASE, method], score))
        for (realisation, method), rows in scored.items()
        if realisation != BASE and (BASE, method) in scored
    ]


@dataclass(frozen=True)
class FaithfulnessTruth:
    """The rank correlation of a score without truth (`cpr`, `cmd`) with one against the truth (`auroc`, `exact`).

    Args:
        where: a realisation, or all of them.
        faithfulness, truth: the two scores.
        pooled: over all circuits.
        within: the mean of the rank correlations over the methods of one subject.
        circuits: how many circuits have both scores.
        left_out: how many have not.
        undefined: in how many subjects the correlation over methods is undefined.
    """

    where: str
    faithfulness: str
    truth: str
    pooled: Estimate | None
    within: Estimate | None
    circuits: int
    left_out: int
    undefined: int


def correlations(table: ResultTable) -> list[FaithfulnessTruth]:
    """The correlations over all realisations and, if there are several, over each."""
    places = [EVERYWHERE, *table.realisations] if len(table.realisations) > 1 else list(table.realisations)
    return [
        _correlation(table, where, faithfulness, truth)
        for where in places
        for faithfulness in ("cpr", "cmd")
        for truth in ("auroc", "exact")
    ]


def _correlation(table: ResultTable, where: str, faithfulness: str, truth: str) -> FaithfulnessTruth:
    rows = [row for row in table.scored if where in (EVERYWHERE, row.realisation)]
    units: dict[tuple[str, int], list[Point]] = defaultdict(list)
    subjects: dict[tuple[str, str, int], list[Point]] = defaultdict(list)
    for row in rows:
        x, y = row.scores[faithfulness], row.scores[truth]
        if x is not None and y is not None:
            x, y = round(x, DIGITS), round(y, DIGITS)
            units[row.case, row.seed].append((x, y))
            subjects[row.case, row.realisation, row.seed].append((x, y))
    within = [(case, spearman(points)) for (case, _, _), points in subjects.items()]
    circuits = sum(map(len, units.values()))
    return FaithfulnessTruth(
        where,
        faithfulness,
        truth,
        rank_correlation(units) if units else None,
        _mean(within),
        circuits,
        len(rows) - circuits,
        sum(value is None for _, value in within),
    )


@dataclass(frozen=True)
class SeedSpread:
    """How a method's answers differ between seeds of one case and realisation.

    Args:
        realisation, method: of which rows.
        deviation: the mean over cases of the standard deviation of the AUROC over seeds.
        overlap: the mean over cases of the overlap of found edges between two seeds: the share of the edges found with
            one of them that were found with both. Edges that are found only if ties are broken well do not count.
        truth_overlap: the same of the needed edges. It is below 1 if seeds have pairs that need different edges.
    """

    realisation: str
    method: str
    deviation: Estimate | None
    overlap: Estimate | None
    truth_overlap: Estimate | None


def seed_spreads(table: ResultTable) -> list[SeedSpread]:
    """The spread for each realisation and method; only cases with two seeds or more count."""
    found = []
    for (realisation, method), rows in _scored(table).items():
        by_case: dict[str, list[ResultRow]] = defaultdict(list)
        for row in rows:
            by_case[row.case].append(row)
        several = {case: group for case, group in by_case.items() if len(group) > 1}
        found.append(
            SeedSpread(
                realisation,
                method,
                _mean((case, _deviation(group)) for case, group in several.items()),
                _mean((case, _overlap(group, lambda row: row.found)) for case, group in several.items()),
                _mean((case, _overlap(group, lambda row: frozenset(row.alone))) for case, group in several.items()),
            )
        )
    return found


def _deviation(rows: Sequence[ResultRow]) -> float | None:
    values = [value for row in rows if (value := row.scores["auroc"]) is not None]
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _overlap(rows: Sequence[ResultRow], edges: Callable[[ResultRow], frozenset[str]]) -> float | None:
    """The mean over pairs of rows; `None` if no row has an edge."""
    pairs = [(edges(one), edges(other)) for one, other in combinations(rows, 2)]
    shares = [len(one & other) / len(one | other) for one, other in pairs if one | other]
    return float(np.mean(shares)) if shares else None


@dataclass(frozen=True)
class ReportedParts:
    """Which edges a method reports that it should not, or need not; ties are broken at random.

    Args:
        realisation, method: of which rows.
        unread: the mean share of the inert edges that do not lead to the case's output (of decoys, of another program)
            that were reported.
        other: the mean share of all other inert edges that were reported, in the same rows.
        jointly: the mean share of the edges needed jointly that were reported; they may be.
        unread_edges, jointly_edges: how many there are in all rows.
    """

    realisation: str
    method: str
    unread: Estimate | None
    other: Estimate | None
    jointly: Estimate | None
    unread_edges: int
    jointly_edges: int


def reported_parts(table: ResultTable) -> list[ReportedParts]:
    """For each realisation and method with edges that do not lead to the output, or with edges needed jointly."""
    found = []
    for (realisation, method), rows in _scored(table).items():
        with_unread = [(row, edges) for row in rows if (edges := (row.unread or frozenset()).intersection(row.inert))]
        jointly = sum(len(row.jointly) for row in rows)
        if not with_unread and not jointly:
            continue
        found.append(
            ReportedParts(
                realisation,
                method,
                _mean((row.case, row.reported_share(edges)) for row, edges in with_unread),
                _mean((row.case, row.reported_share(frozenset(row.inert) - edges)) for row, edges in with_unread),
                _mean((row.case, row.reported_share(frozenset(row.jointly))) for row in rows),
                sum(len(edges) for _, edges in with_unread),
                jointly,
            )
        )
    return found
