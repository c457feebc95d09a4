"""`tracr lab report`: the scores of a run on the screen, as a page, as tables and as figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracr.cli.options import Json, print_json

if TYPE_CHECKING:
    from tracr.lab.reporting.lab_report import OneReport, TracksReport

__all__ = ["report_scores"]


def report_scores(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="The folder that `tracr lab run` wrote; or several, for one report."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write a page (FILE.html), or a folder of page, tables and figures.",
            show_default=False,
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Write the leaderboard (FILE.csv), or a folder of all tables.", show_default=False
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the figures as SVG and PDF (needs matplotlib).", show_default=False),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The title of the page.", show_default=False)
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="List the errors of failed rows.")] = False,
    as_json: Json = False,
) -> None:
    """Print the mean scores of each method on each realisation, with 95 % intervals; or write them as a page.

    Several RESULTS, of one track or of different ones, make one page.

    Intervals are a bootstrap over cases, and within each case over its seeds. Undefined scores (no needed or no inert
    edge) are left out and counted; so are twins that were not admitted, and failed rows. The text of RESULTS/notes.md,
    if there is one, becomes part of the page.

    Example: tracr lab report results -o report.html, or: tracr lab report edges variables features -o report.html
    """
    from tracr.cli.lab_screen import show_errors, show_standings
    from tracr.lab import report
    from tracr.lab.reporting import TracksReport

    made = report(results[0], title=title) if len(results) == 1 else report(results, title=title)
    runs = tuple(made.named.values()) if isinstance(made, TracksReport) else (made,)
    _write_parts(made, csv, figures)
    if output is not None:
        page = made.save(output)
        rows, cases = sum(len(one.table.rows) for one in runs), {case for one in runs for case in one.table.cases}
        many = f"{len(cases)} case{'' if len(cases) == 1 else 's'}"
        typer.echo(f"{page}: {rows:,} rows of {many}, {len(made.html) / 1e6:.1f} MB")
    elif as_json:
        print_json(_cells(made))
    else:
        for number, one in enumerate(runs):
            if len(runs) > 1:
                typer.echo(f"{one.title}\n" if number == 0 else f"\n{one.title}\n")
            show_standings(one.leaderboard())
    if errors:
        for one in runs:
            show_errors(one.table.light)


def _cells(made: OneReport | TracksReport) -> list[dict[str, Any]]:
    """The leaderboard as rows of cells; of several runs, with the name of the run."""
    from tracr.cli.lab_screen import as_cells
    from tracr.lab.reporting import TracksReport

    if isinstance(made, TracksReport):
        return [{"track": name, **as_cells(one)} for name, run in made.named.items() for one in run.leaderboard()]
    return [as_cells(one) for one in made.leaderboard()]


def _write_parts(made: OneReport | TracksReport, csv: Path | None, figures: Path | None) -> None:
    """Write the tables and the figures that were asked for."""
    from tracr.cli.lab_screen import csv_text
    from tracr.writing import write_file

    if csv is not None and csv.suffix.lower() == ".csv":
        write_file(csv, csv_text(_cells(made)).encode())
    elif csv is not None:
        made.save_tables(csv)
    if figures is not None:
        made.save_figures(figures)
