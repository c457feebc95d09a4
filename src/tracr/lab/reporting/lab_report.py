"""`report`: the tables, figures and the page of a run, or of several."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tracr.arguments import text
from tracr.errors import FormatError, InputError
from tracr.ir.graph import unique_labels
from tracr.lab.leaderboard import Standing, iterate_results
from tracr.lab.reporting.answers_report import ANSWERS_TITLES, AnswersReport
from tracr.lab.reporting.features_report import FEATURES_TITLE, FeaturesReport
from tracr.lab.reporting.figures import figure_makers
from tracr.lab.reporting.html_pieces import escaped, html_table
from tracr.lab.reporting.page import Content, content_of, page_of_several
from tracr.lab.reporting.results_table import ResultTable, result_table
from tracr.lab.reporting.saved_report import DrawnFigures, RunReport, SavedReport
from tracr.lab.reporting.tables import Findings, ReportTable, report_tables
from tracr.lab.reporting.track_table import track_table
from tracr.lab.reporting.variables_report import VARIABLES_TITLE, VariablesReport
from tracr.lab.track import EDGES, FEATURES, TRACKS, VARIABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LabReport", "TracksReport", "report"]

TITLE = "Circuit discovery on known circuits"
TRACKS_TITLE = "Methods of interpretability on known mechanisms"
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
class LabReport(RunReport):
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
    def content(self) -> Content:
        """What the page shows."""
        return content_of(self.title, self.findings, dict(self.tables), self.notes)

    def _repr_html_(self) -> str:
        """The leaderboard, for notebooks."""
        return f'{STYLE}<div class="tracr-lab">{html_table(self.tables["leaderboard"])}</div>'


OneReport = LabReport | VariablesReport | FeaturesReport | AnswersReport
"""The report of one run."""
Folders = list[str] | list[Path] | tuple[str | Path, ...]


@dataclass(frozen=True, eq=False)
class TracksReport(SavedReport):
    """One report of several runs: their tables, figures, and a page with all of them.

    Args:
        reports: the reports of the runs.
        title: the title of the page.
    """

    reports: tuple[OneReport, ...]
    title: str = TRACKS_TITLE

    def __repr__(self) -> str:
        return f"TracksReport({', '.join(self.named)}; .save(path) writes it)"

    @cached_property
    def named(self) -> Mapping[str, OneReport]:
        """The reports by their tracks; further ones of a track have a number."""
        tracks = [_track_of(one) for one in self.reports]
        return dict(zip(unique_labels(tracks), self.reports, strict=True))

    @cached_property
    def tables(self) -> Mapping[str, ReportTable]:
        """All tables: "variables/control" is that of a track."""
        return {f"{name}/{key}": table for name, one in self.named.items() for key, table in one.tables.items()}

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """All figures, named as tables are; drawn when they are asked for."""
        names = [(name, key) for name, one in self.named.items() for key in one.figures]
        return DrawnFigures({f"{name}/{key}": partial(self._figure, name, key) for name, key in names})

    def _figure(self, name: str, key: str) -> Figure:
        return self.named[name].figures[key]

    def leaderboard(self) -> list[Standing]:
        """The standings of all runs."""
        return [standing for one in self.reports for standing in one.leaderboard()]

    @cached_property
    def html(self) -> str:
        """The page."""
        return page_of_several(self.title, {name: one.content for name, one in self.named.items()})

    def _repr_html_(self) -> str:
        """The leaderboards, for notebooks."""
        return "".join(f"<h3>{escaped(one.title)}</h3>{one._repr_html_()}" for one in self.reports)


def _track_of(made: OneReport) -> str:
    match made:
        case LabReport():
            return EDGES.name
        case VariablesReport():
            return VARIABLES.name
        case FeaturesReport():
            return FEATURES.name
        case AnswersReport(track=track):
            return track.name


@overload
def report(
    results: str | Path | Iterable[Mapping[str, Any]], *, title: str | None = None, notes: str | None = None
) -> OneReport: ...


@overload
def report(results: Folders, *, title: str | None = None, notes: str | None = None) -> TracksReport: ...


def report(
    results: str | Path | Iterable[Mapping[str, Any]] | Folders,
    *,
    title: str | None = None,
    notes: str | None = None,
) -> OneReport | TracksReport:
    """A report of the results of a run, of the kind of its track; or one of several runs, also of different tracks.

    Args:
        results: the folder that `run` wrote, also if it has not finished; a Parquet file; rows, as `read_results`
            gives them; or several folders or files.
        title: the title of the page; by default one for the track.
        notes: a text for the page. By default that of the file notes.md in the folder, if there is one. Not for several
            runs, each of which has its own.
    """
    if isinstance(results, str | Path):
        folder = Path(results)
        return _one_report(iterate_results(folder), title, _read_notes(folder / NOTES) if notes is None else notes)
    rows: Iterator[Any] = iter(results)
    first = next(rows, None)
    given = itertools.chain([] if first is None else [first], rows)
    if not isinstance(first, str | Path):
        return _one_report(given, title, notes or "")
    if notes is not None:
        raise InputError("several runs have no notes of their own", hint=f"write {NOTES} into the folder of each run")
    made = tuple(report(Path(one)) for one in given)
    return TracksReport(made, text("title", TRACKS_TITLE if title is None else title))


def _one_report(rows: Iterator[Mapping[str, Any]], title: str | None, notes: str) -> OneReport:
    """The report of one run."""
    first = next(rows, None)
    given = itertools.chain([] if first is None else [first], rows)
    track = TRACKS.get(first.get("track", ""), EDGES) if isinstance(first, Mapping) else EDGES
    heading = text("title", TITLES[track.name] if title is None else title)
    match track.name:
        case VARIABLES.name:
            return VariablesReport(track_table(given, track), heading, notes)
        case FEATURES.name:
            return FeaturesReport(track_table(given, track), heading, notes)
        case name if name in ANSWERS_TITLES:
            return AnswersReport(track_table(given, track), track, heading, notes)
    return LabReport(result_table(given), heading, notes)


def _read_notes(path: Path) -> str:
    if not path.is_file():
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} cannot be read: {error}", hint="write it as UTF-8, or remove it") from error
