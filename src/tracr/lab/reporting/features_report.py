"""The report of a run of the track "features": scores beside controls, by dials, and reconstruction against truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tracr.lab.leaderboard import Standing
from tracr.lab.reporting.feature_tables import (
    beside_table,
    dials_of,
    dials_table,
    leader_table,
    mean_of,
    reconstruction_table,
)
from tracr.lab.reporting.html_pieces import escaped, html_table, listed, notes_html, paragraph, shown_table
from tracr.lab.reporting.page import Content, filters
from tracr.lab.reporting.plots import line_panel, scatter_plot
from tracr.lab.reporting.saved_report import RunReport
from tracr.lab.reporting.sentences import estimate_text
from tracr.lab.reporting.tables import ReportTable
from tracr.lab.reporting.track_page import left_out_table, score_panels, track_content
from tracr.lab.reporting.track_table import TrackTable
from tracr.lab.track import FEATURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FEATURES_TITLE", "FeaturesReport"]

FEATURES_TITLE = "Features of known programs"
SHOWN = ("f1", "cosine", "firing", "causal")
SAID = 12  # methods on realisations with a sentence each; more are only in the table
LIMITS = (
    "Features are flags of random tokens: sparse, and independent unless a correlation is dialled. Features of "
    "language models are neither known nor so simple.",
    "The number of true features is told to every method. Hyperparameters are the defaults, or those in the name.",
    "The ceiling is a reference that is told where features fire. Its directions show what can be known; its firing is "
    "that of linear reads, which another method may exceed.",
    "Intervals speak about cases and seeds like these; with fewer than about ten cases they are too narrow.",
)


@dataclass(frozen=True, eq=False)
class FeaturesReport(RunReport):
    """A report of a run: `tables` and a page, as `LabReport`; it has no figures."""

    table: TrackTable = field(repr=False)
    title: str = FEATURES_TITLE
    notes: str = field(default="", repr=False)

    def __repr__(self) -> str:
        size = [f"{len(getattr(self.table, name))} {name}" for name in ("cases", "realisations", "methods")]
        return f"FeaturesReport({len(self.table.rows):,} rows: {', '.join(size)}; .save(path) writes it)"

    @cached_property
    def tables(self) -> Mapping[str, ReportTable]:
        """All tables by name: leaderboard, beside, dials, reconstruction, left_out."""
        makers = (leader_table, beside_table, dials_table, reconstruction_table, left_out_table)
        return {one.name: one for one in (make(self.table) for make in makers)}

    def leaderboard(self) -> list[Standing]:
        """The standing of each method on each realisation."""
        return list(self.table.standings.values())

    @property
    def figures(self) -> Mapping[str, Figure]:
        """None."""
        return {}

    @cached_property
    def content(self) -> Content:
        """What the page shows."""
        table = self.table
        about = [
            f"{len(table.cases)} cases, {len(table.rows):,} rows; up to {table.conditions['pairs']} interventions for "
            "each feature.",
            "A mean is that over cases of the mean over seeds; intervals have 95 %.",
        ]
        parts = {
            "Leaderboard": [paragraph(about), filters(table), shown_table(self.tables["leaderboard"])],
            "Scores": score_panels(table, SHOWN),
            "Control, null and ceiling": [listed(above_null(table)), shown_table(self.tables["beside"])],
            "By the dials of cases": [*dial_panels(table), shown_table(self.tables["dials"])],
            "Does a dictionary that reconstructs well find the features?": [
                _scatter(table),
                shown_table(self.tables["reconstruction"]),
            ],
            "What it means, and what it does not": [notes_html(self.notes), listed(LIMITS)],
            "What was left out": [shown_table(self.tables["left_out"])],
        }
        return track_content(self.title, parts, table, FEATURES)

    def _repr_html_(self) -> str:
        """The leaderboard, for notebooks."""
        return html_table(self.tables["leaderboard"])


def above_null(table: TrackTable) -> list[str]:
    """By how much F1 is above that of as many random atoms, for each method and realisation, unless they are many."""
    if len(table.cells) > SAID:
        return []
    found = []
    for (realisation, method), cell in table.cells.items():
        lead = mean_of(cell, "f1", "null_f1")
        found.append(f"{method} on {realisation}: F1 minus that of as many random atoms {estimate_text(lead)}.")
    return found


def dial_panels(table: TrackTable) -> list[str]:
    """F1 over the kinds of cases, for each method on each realisation; nothing if all cases are of one kind."""
    kinds = sorted({dials_of(case) for case in table.cases})
    if len(kinds) < 2:
        return []
    plots = []
    for (realisation, method), cell in table.cells.items():
        rows = defaultdict(list)
        for row in cell:
            rows[dials_of(row.case)].append(row)
        items = [(kind, mean_of(rows[kind], "f1")) for kind in kinds]
        plots.append(
            f'<figure data-method="{escaped(method)}"><figcaption>{escaped(method)} on {escaped(realisation)}'
            f"</figcaption>{line_panel(f'f1 of {method} on {realisation}', 'dials', items, (0.0, 1.0))}</figure>"
        )
    return [f'<div class="panels"><h3>F1 by the dials of cases</h3>{"".join(plots)}</div>']


def _scatter(table: TrackTable) -> str:
    """The share of variance against F1, a dot for each dictionary."""
    points = [
        (max(0.0, row.given["variance"]), row.given["f1"], False)
        for row in table.rows
        if row.scored and row.given["variance"] is not None and row.given["f1"] is not None
    ]
    if not points:
        return ""
    plot = scatter_plot("F1 by variance", ("share of variance", "F1"), points)
    return f'<div class="panels"><figure>{plot}</figure></div><p>A dot for each dictionary.</p>'
