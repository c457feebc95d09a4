"""`report`: the tables, figures and the page of a run."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.arguments import text
from tracr.errors import FormatError, InputError
from tracr.lab.leaderboard import Standing, iterate_results
from tracr.lab.reporting.figures import figure_makers
from tracr.lab.reporting.html_pieces import html_table
from tracr.lab.reporting.page import page_html
from tracr.lab.reporting.results_table import ResultTable, result_table
from tracr.lab.reporting.tables import Findings, ReportTable, report_tables
from tracr.writing import write_file, written_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LabReport", "report"]

TITLE = "Circuit discovery on known circuits"
NOTES = "notes.md"
PAGES = (".html", ".htm")
STYLE = """<style>
.tracr-lab {overflow-x: auto} .tracr-lab td, .tracr-lab th {text-align: left; white-space: nowrap; padding: 1px 8px}
.tracr-lab button {all: unset; font-weight: 600} .tracr-lab small {opacity: .7}
</style>"""


@dataclass(frozen=True, eq=False)
class LabReport:
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

    def save(self, path: str | Path) -> Path:
        """Write the page to a file .html, or page, tables and figures to a folder; returns the path of the page."""
        target = Path(path)
        if target.suffix.lower() in PAGES:
            write_file(target, self.html.encode())
            return target
        if target.suffix:
            raise InputError(f"{target} is neither a page nor a folder", hint="name a file .html, or a folder")
        self.save_tables(target / "tables")
        self.save_figures(target / "figures")
        write_file(target / "report.html", self.html.encode(), make_folder=True)
        return target / "report.html"

    def save_tables(self, folder: str | Path) -> list[Path]:
        """Write every table to a CSV file in a folder; returns the files."""
        written = []
        for name, table in self.tables.items():
            written.append(Path(folder) / f"{name}.csv")
            write_file(written[-1], table.csv().encode(), make_folder=True)
        return written

    def save_figures(self, folder: str | Path) -> list[Path]:
        """Write every figure as SVG and as PDF into a folder; returns the files."""
        figures, written = self.figures, []
        with written_to(Path(folder)):
            Path(folder).mkdir(parents=True, exist_ok=True)
        for name, figure in figures.items():
            from tracr.viz.canvas import save_figure

            for kind in ("svg", "pdf"):
                written.append(Path(folder) / f"{_file_name(name)}.{kind}")
                save_figure(figure, written[-1])
        return written

    def open(self) -> Path:
        """Open the page in the browser, from a temporary file."""
        with written_to(Path("a temporary folder")):
            folder = Path(tempfile.mkdtemp(prefix="tracr-"))
        path = self.save(folder / "report.html")
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        """The leaderboard, for notebooks."""
        return f'{STYLE}<div class="tracr-lab">{html_table(self.tables["leaderboard"])}</div>'


class DrawnFigures(Mapping[str, "Figure"]):
    """Figures that are drawn when they are first asked for."""

    def __init__(self, makers: Mapping[str, Any]) -> None:
        self._makers, self._made = dict(makers), dict[str, Any]()

    def __getitem__(self, name: str) -> Figure:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _file_name(name: str) -> str:
    """A name with letters, digits, _ and - only."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "-" for letter in name)[
        :120
    ]


def report(
    results: str | Path | Iterable[Mapping[str, Any]], *, title: str = TITLE, notes: str | None = None
) -> LabReport:
    """A report of the results of a run.

    Args:
        results: the folder that `run` wrote, also if it has not finished; a Parquet file; or rows, as `read_results`
            gives them.
        title: the title of the page.
        notes: a text for the page. By default that of the file notes.md in the folder, if there is one.
    """
    title = text("title", title)
    if not isinstance(results, str | Path):
        return LabReport(result_table(results), title, notes or "")
    folder = Path(results)
    if notes is None:
        notes = _read_notes(folder / NOTES)
    return LabReport(result_table(iterate_results(folder)), title, notes)


def _read_notes(path: Path) -> str:
    if not path.is_file():
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} cannot be read: {error}", hint="write it as UTF-8, or remove it") from error
