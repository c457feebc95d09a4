"""The report of a run of the tracks "explanations", "predictions" and "replacements": scores with intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tracr.explaining.roles import ROLES
from tracr.lab.leaderboard import Standing
from tracr.lab.reporting.html_pieces import html_table, listed, notes_html, paragraph, shown_table
from tracr.lab.reporting.page import Content, filters
from tracr.lab.reporting.saved_report import RunReport
from tracr.lab.reporting.tables import ReportTable
from tracr.lab.reporting.track_page import left_out_table, score_panels, track_content
from tracr.lab.reporting.track_table import TrackTable
from tracr.lab.track import EXPLANATIONS, PREDICTIONS, REPLACEMENTS, Track

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ANSWERS_TITLES", "AnswersReport"]

ANSWERS_TITLES = {
    EXPLANATIONS.name: "Explanations of known components",
    PREDICTIONS.name: "Predicted interventions",
    REPLACEMENTS.name: "Components replaced by compiled parts",
}
"""The title of the page of each of these tracks."""
MEANT = {
    EXPLANATIONS.name: "The mean of each score over cases, with its 95 % interval. Accuracy is the mean overlap with "
    "the true roles; chance is its expected value for roles drawn at random.",
    PREDICTIONS.name: "The mean of each score over cases, with its 95 % interval. Where it matters: of the questions "
    "whose answer changes. Set and patch: the same, for each kind of question.",
    REPLACEMENTS.name: "The mean of each score over cases, with its 95 % interval. Recovered is the share of the "
    "accuracy that claimed parts recover; counts, the share of components whose part counts; same, whose "
    "part has the true output.",
}
LIMITS = {
    EXPLANATIONS.name: (
        "Roles are coarse: a method that names the right role need not know what is counted or copied.",
        "Some roles are common, so that a constant answer is often right. Compare with constant-roles.",
        "Intervals speak about cases and seeds like these; with fewer than about ten cases they are too narrow.",
    ),
    PREDICTIONS.name: (
        "At least half of the questions change the answer, where such were found: `no-change` has 0 where it matters.",
        "A circuit of edges knows no variables, so that it has 0 for questions that set one.",
        "Intervals speak about cases and seeds like these; with fewer than about ten cases they are too narrow.",
    ),
    REPLACEMENTS.name: (
        "A part that recovers everything need not be the true one: the rest of the model may need less.",
        "A component that averages is linear, and no part beats the linear control there.",
        "Intervals speak about cases and seeds like these; with fewer than about ten cases they are too narrow.",
    ),
}


@dataclass(frozen=True, eq=False)
class AnswersReport(RunReport):
    """A report of a run: `tables` and a page, as `LabReport`; it has no figures for print."""

    table: TrackTable = field(repr=False)
    track: Track
    title: str
    notes: str = field(default="", repr=False)

    def __repr__(self) -> str:
        size = [f"{len(getattr(self.table, name))} {name}" for name in ("cases", "realisations", "methods")]
        return (
            f"AnswersReport({self.track.name}, {len(self.table.rows):,} rows: {', '.join(size)}; .save(path) writes it)"
        )

    @cached_property
    def tables(self) -> Mapping[str, ReportTable]:
        """All tables by name: leaderboard, roles (of explanations), left_out."""
        made = [_leaderboard(self.table, self.track), left_out_table(self.table)]
        if self.track is EXPLANATIONS:
            made.insert(1, _roles(self.table))
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
        table = self.table
        asked = f"; {table.conditions['pairs']} questions for each subject" if self.track is PREDICTIONS else ""
        about = [
            f"{len(table.cases)} cases, {len(table.rows):,} rows{asked}.",
            "A mean is that over cases of the mean over seeds; intervals have 95 %.",
        ]
        parts = {
            "Leaderboard": [paragraph(about), filters(table), shown_table(self.tables["leaderboard"])],
            "Scores": score_panels(table, self.track.scores[:3]),
            **({"Roles": [shown_table(self.tables["roles"])]} if "roles" in self.tables else {}),
            "What it means, and what it does not": [notes_html(self.notes), listed(LIMITS[self.track.name])],
            "What was left out": [shown_table(self.tables["left_out"])],
        }
        return track_content(self.title, parts, table, self.track)

    def _repr_html_(self) -> str:
        """The leaderboard, for notebooks."""
        return html_table(self.tables["leaderboard"])


def _leaderboard(table: TrackTable, track: Track) -> ReportTable:
    rows = [(*key, *(one.scores[name] for name in track.scores), one.seconds) for key, one in table.standings.items()]
    names = (name.replace("_", " ") for name in track.scores)
    return ReportTable("leaderboard", MEANT[track.name], ("realisation", "method", *names, "seconds"), tuple(rows))


def _roles(table: TrackTable) -> ReportTable:
    """For each role, how often it is true, answered, and both."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for row in table.rows:
        for number, role in enumerate(row.given["roles"] or () if row.scored else ()):
            for part in ("true", "answered", "right"):
                counts[row.realisation, row.method, role][part] += row.given[f"role_{part}"][number]
    rows = [
        (
            *key,
            one["true"],
            one["answered"],
            one["right"] / one["answered"] if one["answered"] else None,
            one["right"] / one["true"] if one["true"] else None,
        )
        for key, one in sorted(counts.items(), key=lambda item: (*item[0][:2], [*ROLES].index(item[0][2])))
    ]
    return ReportTable(
        "roles",
        "For each role, over all cases and seeds: the components that have it, the answers that name it, and the "
        "shares of these that are right (precision) and found (recall).",
        ("realisation", "method", "role", "components", "answers", "precision", "recall"),
        tuple(rows),
    )
