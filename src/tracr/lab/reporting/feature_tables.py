"""The tables of a run of the track "features"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tracr.lab.bootstrap import Estimate, hierarchical_bootstrap
from tracr.lab.choices import Configured, read_configured
from tracr.lab.reporting.rank_correlation import rank_correlation
from tracr.lab.reporting.tables import ReportTable
from tracr.lab.reporting.track_table import TrackRow, TrackTable
from tracr.lab.track import FEATURES

__all__ = ["beside_table", "dials_of", "dials_table", "leader_table", "mean_of", "reconstruction_table"]

BESIDE = ("f1", "cosine", "firing", "causal")
OTHERS = ("control", "null", "ceiling")


def mean_of(rows: Iterable[TrackRow], column: str, minus: str | None = None) -> Estimate | None:
    """The mean of a column over cases, or of its difference to another one; `None` if it is undefined in all rows."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        value, other = row.given[column], 0.0 if minus is None else row.given[minus]
        if row.scored and value is not None and other is not None:
            values[row.case].append(value - other)
    return hierarchical_bootstrap(values) if values else None


def dials_of(case: str) -> str:
    """The dials of a case without its seed: those that name a kind of case.

    >>> dials_of("features:density=0.02:seed=3")
    'density=0.02'
    """
    settings = {name: value for name, value in read_configured(case).settings.items() if name != "seed"}
    return str(Configured("", settings)).lstrip(":") or "default"


def leader_table(table: TrackTable) -> ReportTable:
    """The mean of each score."""
    rows = [
        (*key, *(one.scores[name] for name in FEATURES.scores), one.seconds) for key, one in table.standings.items()
    ]
    return ReportTable(
        "leaderboard",
        "The mean of each score over cases, with its 95 % interval. Less absorption is better, and splitting is best "
        "at 1; else larger is better.",
        ("realisation", "method", *FEATURES.scores, "seconds"),
        tuple(rows),
    )


def beside_table(table: TrackTable) -> ReportTable:
    """Each score beside the control, the null and the ceiling."""
    rows = []
    for (realisation, method), cell in table.cells.items():
        for score in BESIDE:
            others = (mean_of(cell, f"{other}_{score}") for other in OTHERS)
            lead = mean_of(cell, score, f"null_{score}")
            rows.append((realisation, method, score, mean_of(cell, score), *others, lead))
    return ReportTable(
        "beside",
        "Each score on the same subjects: of the method; of the method on the model in its own dimensions, where "
        "features are orthogonal (control); of as many random atoms (null); of a reference that is told where features "
        "fire (ceiling). The last column is the mean difference to the null.",
        ("realisation", "method", "score", "method's", *OTHERS, "method's minus null"),
        tuple(rows),
    )


def dials_table(table: TrackTable) -> ReportTable:
    """The main scores by the dials of cases."""
    groups: dict[tuple[str, str, str], list[TrackRow]] = defaultdict(list)
    for row in table.rows:
        groups[dials_of(row.case), row.realisation, row.method].append(row)
    columns = ("f1", "cosine", "causal", "control_f1", "null_f1", "ceiling_f1", "right_answers")
    return ReportTable(
        "dials",
        "The means for each kind of case: cases with the same dials, which differ in their seed. Right answers are "
        "those of the model itself: 1 if superposition changes no answer.",
        ("dials", "realisation", "method", *(name.replace("_", " ") for name in columns)),
        tuple((*key, *(mean_of(rows, column) for column in columns)) for key, rows in groups.items()),
    )


def reconstruction_table(table: TrackTable) -> ReportTable:
    """Whether dictionaries that reconstruct more find more features."""
    rows: list[tuple[Any, ...]] = []
    for realisation in table.realisations:
        for score in BESIDE:
            rows.append((realisation, score, _correlated(table, realisation, score)))
    return ReportTable(
        "reconstruction",
        "The rank correlation, over all dictionaries, of the share of variance that is reconstructed with each score.",
        ("realisation", "score", "rank correlation with variance"),
        tuple(rows),
    )


def _correlated(table: TrackTable, realisation: str, score: str) -> Estimate | None:
    points: Mapping[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for row in table.rows:
        pair = row.given["variance"], row.given[score]
        if row.realisation == realisation and row.scored and None not in pair:
            points[row.case, row.seed].append(pair)
    return rank_correlation(points)
