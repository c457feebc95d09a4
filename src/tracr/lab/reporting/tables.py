"""The tables of a report: the same on the page and in CSV files."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tracr.lab.bootstrap import Estimate
from tracr.lab.reporting.comparing import (
    Change,
    FaithfulnessTruth,
    Lead,
    ReportedParts,
    SeedSpread,
    changes,
    correlations,
    leads,
    reported_parts,
    seed_spreads,
)
from tracr.lab.reporting.results_table import SCORE_NAMES, ResultTable

__all__ = ["Findings", "ReportTable", "report_tables"]

OUTCOMES = ("scored", "failed", "not made", "not admitted")
PARTS = ("mean", "low", "high", "cases", "values")


@dataclass(frozen=True)
class ReportTable:
    """A table: its name, a sentence about it, columns, and rows of texts, numbers, estimates and `None` (undefined)."""

    name: str
    says: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def csv(self) -> str:
        """The table as CSV: an estimate has the columns mean, low, high, cases and values."""
        wide = [any(isinstance(row[place], Estimate) for row in self.rows) for place in range(len(self.columns))]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(
            [
                f"{name} {part}".strip() if part else name
                for name, is_wide in zip(self.columns, wide, strict=True)
                for part in (PARTS if is_wide else ("",))
            ]
        )
        for row in self.rows:
            cells: list[Any] = []
            for cell, is_wide in zip(row, wide, strict=True):
                cells += [getattr(cell, part, None) for part in PARTS] if is_wide else [cell]
            writer.writerow(cells)
        return text.getvalue()


@dataclass(frozen=True, eq=False)
class Findings:
    """The answers to the questions about a table, each computed once."""

    table: ResultTable

    @cached_property
    def leads(self) -> list[Lead]:
        """The leading method on each realisation, by AUROC."""
        return leads(self.table)

    @cached_property
    def changes(self) -> list[Change]:
        """The change of the AUROC from the compiled models."""
        return changes(self.table)

    @cached_property
    def correlations(self) -> list[FaithfulnessTruth]:
        """The rank correlations of faithfulness and truth."""
        return correlations(self.table)

    @cached_property
    def spreads(self) -> list[SeedSpread]:
        """The spread between seeds."""
        return seed_spreads(self.table)

    @cached_property
    def parts(self) -> list[ReportedParts]:
        """The edges of decoys and those needed jointly that were reported."""
        return reported_parts(self.table)


def report_tables(found: Findings) -> dict[str, ReportTable]:
    """All tables of a report, by name."""
    made = (
        _leaderboard(found.table),
        _left_out(found.table),
        _leads(found),
        _changes(found),
        _correlations(found),
        _seeds(found),
        _parts(found),
        _cases(found.table),
        _errors(found.table),
    )
    return {one.name: one for one in made}


def _leaderboard(table: ResultTable) -> ReportTable:
    rows = []
    for (realisation, method), one in table.standings.items():
        scored = [row for row in table.cells[realisation, method] if row.scored]
        passes = float(np.mean([row.passes for row in scored])) if scored else None
        seeds = len({row.seed for row in scored})
        rows.append((realisation, method, *(one.scores[name] for name in SCORE_NAMES), seeds, passes, one.seconds))
    return ReportTable(
        "leaderboard",
        "The mean of each score over cases, with its 95 % interval. A smaller CMD is better; else larger is better.",
        ("realisation", "method", *SCORE_NAMES.values(), "seeds", "passes", "seconds"),
        tuple(rows),
    )


def _left_out(table: ResultTable) -> ReportTable:
    outcomes = {key: Counter(row.outcome for row in rows) for key, rows in table.cells.items()}
    return ReportTable(
        "left_out",
        "Rows that count for the scores; rows that failed, whose model the case does not allow (not made), or whose "
        "model was not admitted; and in how many of the first each score is undefined.",
        (
            "realisation",
            "method",
            "rows",
            *OUTCOMES,
            *(f"{name} undefined" for name in SCORE_NAMES.values()),
        ),
        tuple(
            (
                *key,
                outcomes[key].total(),
                *(outcomes[key][name] for name in OUTCOMES),
                *(one.undefined[name] for name in SCORE_NAMES),
            )
            for key, one in table.standings.items()
        ),
    )


def _leads(found: Findings) -> ReportTable:
    return ReportTable(
        "leads",
        "The method with the largest mean AUROC on each realisation, and its lead on the same cases and seeds.",
        ("realisation", "best method", "AUROC", "next method", "lead", "methods"),
        tuple((one.realisation, one.best, one.mean, one.next, one.ahead, one.methods) for one in found.leads),
    )


def _changes(found: Findings) -> ReportTable:
    return ReportTable(
        "changes",
        "The difference of the AUROC from that on the compiled model of the same case and seed.",
        ("realisation", "method", "change of AUROC"),
        tuple((one.realisation, one.method, one.change) for one in found.changes),
    )


def _correlations(found: Findings) -> ReportTable:
    return ReportTable(
        "correlations",
        "Spearman's rank correlation of faithfulness with truth: over all circuits, and over the methods of one "
        "subject (the mean over subjects).",
        (
            "realisation",
            "faithfulness",
            "truth",
            "all circuits",
            "within a subject",
            "circuits",
            "without both scores",
            "subjects undefined",
        ),
        tuple(
            (
                one.where,
                SCORE_NAMES[one.faithfulness],
                SCORE_NAMES[one.truth],
                one.pooled,
                one.within,
                one.circuits,
                one.left_out,
                one.undefined,
            )
            for one in found.correlations
        ),
    )


def _seeds(found: Findings) -> ReportTable:
    return ReportTable(
        "seeds",
        "Between seeds of one case: the standard deviation of the AUROC, and the overlap of the found and of the "
        "needed edges (1: the same edges), means over cases.",
        ("realisation", "method", "deviation of AUROC", "overlap of found edges", "overlap of needed edges"),
        tuple((one.realisation, one.method, one.deviation, one.overlap, one.truth_overlap) for one in found.spreads),
    )


def _parts(found: Findings) -> ReportTable:
    return ReportTable(
        "parts",
        "The share of the edges of decoys and of other programs, of all other inert edges in the same models, and of "
        "the edges needed jointly that were reported, if ties are broken at random.",
        (
            "realisation",
            "method",
            "decoy or other program reported",
            "other inert edges reported",
            "jointly needed edges reported",
            "edges of decoys or other programs",
            "jointly needed edges",
        ),
        tuple(
            (one.realisation, one.method, one.unread, one.other, one.jointly, one.unread_edges, one.jointly_edges)
            for one in found.parts
        ),
    )


def _cases(table: ResultTable) -> ReportTable:
    """Each case with its size, and the mean AUROC of each method on it."""
    values: dict[tuple[str, str], list[float]] = {}
    sizes: dict[str, tuple[int, int, int]] = {}
    for row in table.rows:
        if row.scored and (auroc := row.scores["auroc"]) is not None:
            values.setdefault((row.case, row.method), []).append(auroc)
    for realisation in reversed(table.realisations):
        for row in table.rows:
            if row.realisation == realisation and row.candidates:
                sizes[row.case] = len(row.candidates), len(row.alone), len(row.jointly)
    rows = [
        (
            case,
            *sizes.get(case, (None, None, None)),
            *(_several(values.get((case, name), ())) for name in table.methods),
        )
        for case in table.cases
    ]
    return ReportTable(
        "cases",
        "Every case: the numbers of candidate edges, of edges needed alone and of edges needed jointly, and the mean "
        "AUROC of each method over realisations and seeds. Single runs are left out. Means of one case have no "
        "interval.",
        ("case", "edges", "needed", "jointly", *table.methods),
        tuple(rows),
    )


def _several(values: Sequence[float]) -> float | None:
    """The mean of two values or more."""
    return float(np.mean(values)) if len(values) > 1 else None


def _errors(table: ResultTable) -> ReportTable:
    groups: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        if row.error:
            groups.setdefault((row.realisation, row.error), []).append(row.case)
    return ReportTable(
        "errors",
        "The errors of failed rows.",
        ("realisation", "error", "rows", "cases"),
        tuple(
            (realisation, error, len(names), ", ".join(sorted(set(names))))
            for (realisation, error), names in groups.items()
        ),
    )
