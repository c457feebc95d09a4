"""`tracr lab report`: the scores of a run on the screen, as a page, as tables and as figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracr.cli.options import Json, print_json

__all__ = ["report_scores"]


def report_scores(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The folder that `tracr lab run` wrote.")],
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

    Intervals are a bootstrap over cases, and within each case over its seeds. Undefined scores (no needed or no inert
    edge) are left out and counted; so are twins that were not admitted, and failed rows. The text of RESULTS/notes.md,
    if there is one, becomes part of the page.

    Example: tracr lab report results -o report.html
    """
    from tracr.cli.lab_screen import as_cells, csv_text, show_errors, show_standings
    from tracr.lab import report
    from tracr.writing import write_file

    made = report(results) if title is None else report(results, title=title)
    if csv is not None and csv.suffix.lower() == ".csv":
        write_file(csv, csv_text(made.leaderboard()).encode())
    elif csv is not None:
        made.save_tables(csv)
    if figures is not None:
        made.save_figures(figures)
    if output is not None:
        page = made.save(output)
        typer.echo(
            f"{page}: {len(made.table.rows):,} rows of {len(made.table.cases)} cases, {len(made.html) / 1e6:.1f} MB"
        )
    elif as_json:
        print_json([as_cells(one) for one in made.leaderboard()])
    else:
        show_standings(made.leaderboard())
    if errors:
        show_errors(made.table.light)
