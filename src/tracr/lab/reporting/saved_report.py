"""Reports that are written as files: a page, tables and figures."""

from __future__ import annotations

import tempfile
import webbrowser
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.errors import InputError
from tracr.lab.leaderboard import Standing
from tracr.lab.reporting.page import Content, page_of
from tracr.lab.reporting.tables import ReportTable
from tracr.writing import write_file, written_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DrawnFigures", "RunReport", "SavedReport"]

PAGES = (".html", ".htm")


class SavedReport(ABC):
    """A report with tables, figures and a page."""

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, ReportTable]:
        """All tables by name."""

    @property
    @abstractmethod
    def figures(self) -> Mapping[str, Figure]:
        """All figures by name."""

    @property
    @abstractmethod
    def html(self) -> str:
        """The page."""

    @abstractmethod
    def leaderboard(self) -> list[Standing]:
        """The standing of each method on each realisation."""

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


class RunReport(SavedReport):
    """The report of one run."""

    @property
    @abstractmethod
    def content(self) -> Content:
        """What the page shows."""

    @cached_property
    def html(self) -> str:
        """The page."""
        return page_of(self.content)


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
