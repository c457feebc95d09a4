"""`report`: the tables, figures and the page of a run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.arguments import text
from tracr.errors import FormatError
from tracr.lab.leaderboard import Standing, iterate_results
from tracr.lab.reporting.answers_report import ANSWERS_TITLES, AnswersReport
from tracr.lab.reporting.features_report import FEATURES_TITLE, FeaturesReport
from tracr.lab.reporting.figures import figure_makers
from tracr.lab.reporting.html_pieces import html_table
from tracr.lab.reporting.page import page_html
from tracr.lab.reporting.results_table import ResultTable, result_table
from tracr.lab.reporting.saved_report import DrawnFigures, SavedReport
from tracr.lab.reporting.tables import Findings, ReportTable, report_tables
from tracr.lab.reporting.track_table import track_table
from tracr.lab.reporting.variables_report import VARIABLES_TITLE, VariablesReport
from tracr.lab.track import EDGES, FEATURES, TRACKS, VARIABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LabReport", "report"]

TITLE = "Circuit discovery on known circuits"
TITLES = {
    EDGES.name: TITLE,
    VARIABLES.name: VARIABLES_TITLE,
    FEATURES.name: FEATURES_TITLE,
    **ANSWERS_TITLES,
}
NOTES = "notes.md"
STYLE = """<style>
.tracr-lab {overflow-x: auto} .tracr-lab td, .tracr-lab th {text-align: left; white-space: nowrap; padding: 1px 8px}
.tracr-lab button {all: unset; font-weight: 600} .tracr-lab small {opacity: .7}
</style>"""


@dataclass(frozen=True, eq=False)
class LabReport(SavedReport):
    """A report of a run: `tables`, `figures`, and a page.

    `save("report.html")` writes the page; `save("folder")` writes the page, `tables/*.csv` and `figures/*.svg|pdf`.

    Args:
        table: the rows of the run.
        title: the title of the page.
        notes: a text for the page: what the results mean, and what they do not.
    """

    table: ResultTable = field(repr=False)
    title: str = TITLE
    notes: str = field(default="", repr=False)

    def __repr__(self) -> str:
        size = [f"{len(getattr(self.table, name))} {name}" for name in ("cases", "realisations", "methods", "seeds")]
        return f"LabReport({len(self.table.rows):,} rows: {', '.join(size)}; .save(path) writes it)"

    @cached_property
    def findings(self) -> Findings:
        """The answers to the laboratory's questions."""
        return Findings(self.table)

    @cached_property
    def tables(self) -> Mapping[str, ReportTable]:
        """All tables by name: leaderboard, left_out, leads, changes, correlations, seeds, parts, cases, errors."""
        return report_tables(self.findings)

    def leaderboard(self) -> list[Standing]:
        """The standing of each method on each realisation."""
        return list(self.table.standings.values())

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """All figures by name, drawn when they are asked for (matplotlib: `pip install 'tracr[viz]'`)."""
        return DrawnFigures(figure_makers(self.findings))

    @cached_property
    def html(self) -> str:
        """The page."""
        return page_html(self.title, self.findings, dict(self.tables), self.notes).encode("utf-8", "replace").decode()

    def _repr_html_(self) -> str:
        """The leaderboard, for notebooks."""
        return f'{STYLE}<div class="tracr-lab">{html_table(self.tables["leaderboard"])}</div>'


def report(
    results: str | Path | Iterable[Mapping[str, Any]], *, title: str | None = None, notes: str | None = None
) -> LabReport | VariablesReport | FeaturesReport | AnswersReport:
    """A report of the results of a run, of the kind of its track.

    Args:
        results: the folder that `run` wrote, also if it has not finished; a Parquet file; or rows, as `read_results`
            gives them.
        title: the title of the page; by default one for the track.
        notes: a text for the page. By default that of the file notes.md in the folder, if there is one.
    """
    rows: Iterator[Mapping[str, Any]]
    if isinstance(results, str | Path):
        folder = Path(results)
        rows = iterate_results(folder)
        notes = _read_notes(folder / NOTES) if notes is None else notes
    else:
        rows = iter(results)
    first = next(rows, None)
    given = itertools.chain([] if first is None else [first], rows)
    track = TRACKS.get(first.get("track", ""), EDGES) if isinstance(first, Mapping) else EDGES
    heading = text("title", TITLES[track.name] if title is None else title)
    match track.name:
        case VARIABLES.name:
            return VariablesReport(track_table(given, track), heading, notes or "")
        case FEATURES.name:
            return FeaturesReport(track_table(given, track), heading, notes or "")
        case name if name in ANSWERS_TITLES:
            return AnswersReport(track_table(given, track), track, heading, notes or "")
    return LabReport(result_table(given), heading, notes or "")


def _read_notes(path: Path) -> str:
    if not path.is_file():
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} cannot be read: {error}", hint="write it as UTF-8, or remove it") from error
