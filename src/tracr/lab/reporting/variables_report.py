"""The report of a run of the track "variables": scores, and which methods pass the control."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tracr.lab.bootstrap import Estimate, hierarchical_bootstrap
from tracr.lab.leaderboard import Standing
from tracr.lab.reporting.html_pieces import html_table, listed, notes_html, paragraph, shown_table
from tracr.lab.reporting.page import Content, case_filter, filters
from tracr.lab.reporting.saved_report import RunReport
from tracr.lab.reporting.tables import ReportTable
from tracr.lab.reporting.track_page import left_out_table, score_panels, track_content
from tracr.lab.reporting.track_table import TrackRow, TrackTable
from tracr.lab.track import VARIABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VARIABLES_TITLE", "VariablesReport", "verdict"]

VARIABLES_TITLE = "Variables of known programs"
BORDER = 0.75
"""Of the control: nearer to a map that does nothing (1/2) than to the program (1), or not."""
SHOWN = ("interchange", "control", "decoding", "right_place", "overlap")
"""The scores that are plotted."""
LIMITS = (
    "A map that changes nothing has an interchange accuracy of 1/2: half of the score is for interchanges that must "
    "not change the answer.",
    "The control is one program per subject that the model does not run. A method that passes it may fail for another.",
    "Places, overlaps and angles are known where labels are: not for twins.",
    "Selectivity compares with random labels by token. Vocabularies are small: a linear probe can memorise them.",
    "Intervals speak about cases and seeds like these; with fewer than about ten cases they are too narrow.",
)


def verdict(control: Estimate | None) -> str:
    """Whether a method passes the control, by the interval of its accuracy on the control.

    >>> verdict(Estimate(0.5, 0.48, 0.52, 4, 8)), verdict(Estimate(0.9, 0.8, 1.0, 4, 8)), verdict(None)
    ('passes', 'fails', 'undefined')
    """
    if control is None:
        return "undefined"
    if control.low is None or control.high is None:
        return "one case: no interval"
    if control.high <= BORDER:
        return "passes"
    return "fails" if control.low > BORDER else "undecided"


@dataclass(frozen=True, eq=False)
class VariablesReport(RunReport):
    """A report of a run: `tables` and a page, as `LabReport`; it has no figures for print."""

    table: TrackTable = field(repr=False)
    title: str = VARIABLES_TITLE
    notes: str = field(default="", repr=False)

    def __repr__(self) -> str:
        size = [f"{len(getattr(self.table, name))} {name}" for name in ("cases", "realisations", "methods")]
        return f"VariablesReport({len(self.table.rows):,} rows: {', '.join(size)}; .save(path) writes it)"

    @cached_property
    def tables(self) -> Mapping[str, ReportTable]:
        """All tables by name: leaderboard, control, variables, left_out."""
        made = (_leaderboard(self.table), _control(self.table), _variables(self.table), left_out_table(self.table))
        return {one.name: one for one in made}

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
        table, given = self.table, self.table.conditions
        about = [
            f"{len(table.cases)} cases, {len(table.rows):,} rows; {given['pairs']} interchanges for each variable.",
            "A mean is that over cases of the mean over seeds; intervals have 95 %.",
        ]
        parts = {
            "Leaderboard": [paragraph(about), filters(table), shown_table(self.tables["leaderboard"])],
            "Scores": score_panels(table, SHOWN),
            "Which methods pass the control?": [listed(about_control(table)), shown_table(self.tables["control"])],
            "Variables": [case_filter(), shown_table(self.tables["variables"])],
            "What it means, and what it does not": [notes_html(self.notes), listed(LIMITS)],
            "What was left out": [shown_table(self.tables["left_out"])],
        }
        return track_content(self.title, parts, table, VARIABLES)

    def _repr_html_(self) -> str:
        """The leaderboard, for notebooks."""
        return html_table(self.tables["leaderboard"])


def about_control(table: TrackTable) -> list[str]:
    """Which methods pass the control, and on which realisations."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (realisation, method), one in table.standings.items():
        found[method, verdict(one.scores["control"])].append(realisation)
    return [f"{method}: {word} on {', '.join(places)}." for (method, word), places in found.items()]


def _leaderboard(table: TrackTable) -> ReportTable:
    rows = [
        (*key, *(one.scores[name] for name in VARIABLES.scores), one.seconds) for key, one in table.standings.items()
    ]
    return ReportTable(
        "leaderboard",
        "The mean of each score over cases, with its 95 % interval. A smaller control and a smaller angle (in degrees) "
        "are better; else larger is better.",
        ("realisation", "method", *(name.replace("_", " ") for name in VARIABLES.scores), "seconds"),
        tuple(rows),
    )


def _control(table: TrackTable) -> ReportTable:
    """Interchange accuracy for the program and for the control, on the same subjects."""
    rows = []
    for (realisation, method), one in table.standings.items():
        ahead: dict[str, list[float]] = defaultdict(list)
        for row in table.cells[realisation, method]:
            own, control = row.given["interchange"], row.given["control"]
            if row.scored and own is not None and control is not None:
                ahead[row.case].append(own - control)
        lead = hierarchical_bootstrap(ahead) if ahead else None
        control_of = one.scores["control"]
        rows.append((realisation, method, one.scores["interchange"], control_of, lead, verdict(control_of)))
    return ReportTable(
        "control",
        "Interchange accuracy for the program that the model runs, and for one that it does not run. A method passes "
        f"the control if the interval of the latter ends at {BORDER} or below, and fails if it begins above.",
        ("realisation", "method", "program", "control", "program minus control", "verdict"),
        tuple(rows),
    )


def _variables(table: TrackTable) -> ReportTable:
    groups: dict[tuple[str, str, str, str], list[tuple[TrackRow, int]]] = defaultdict(list)
    for row in table.rows:
        for number, name in enumerate(row.given["variables"] or () if row.scored else ()):
            groups[row.case, name, row.realisation, row.method].append((row, number))
    columns = ("interchanges", "decodings", "right_places", "overlaps", "angles")
    rows = []
    for key, found in groups.items():
        places = Counter(row.given["places"][number] for row, number in found)
        means = []
        for column in columns:
            values = [row.given[column][number] for row, number in found if row.given[column][number] is not None]
            means.append(float(np.mean(values)) if values else None)
        rows.append((*key, places.most_common(1)[0][0], *means))
    return ReportTable(
        "variables",
        "Every variable: the place that a method chose most often, and the mean scores over seeds.",
        (
            "case",
            "variable",
            "realisation",
            "method",
            "place",
            "interchange",
            "decoding",
            "right place",
            "overlap",
            "angle",
        ),
        tuple(rows),
    )
