"""Prints cases, methods, realisations and scores of the laboratory."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tracr.cli.screen import Screen, plain_table

if TYPE_CHECKING:
    from tracr.lab import Standing

__all__ = [
    "as_cells",
    "csv_text",
    "show_cases",
    "show_dials",
    "show_errors",
    "show_methods",
    "show_realisations",
    "show_standings",
]

COUNTS = ("rows", "failed", "not_admitted", "seconds")


def show_cases(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print cases: name, description, length, number of tokens and of edges, tags."""
    table = plain_table("case", "what it computes", "length", "tokens", "edges", "tags")
    for row in rows:
        sizes = (str(row["length"]), str(row["tokens"]), str(row["edges"]))
        table.add_row(Text(row["name"], "cyan"), Text(row["description"]), *sizes, " ".join(row["tags"]))
    Screen().print(table)


def show_methods(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print methods: name, track, other names, version, settings with their defaults, and the libraries they need."""
    table = plain_table("method", "track", "also", "version", "settings", "needs")
    for row in rows:
        also, needs = ", ".join(row["also"]), ", ".join(row["needs"])
        settings = Text(_defaults(row["settings"]))
        table.add_row(Text(row["name"], "cyan"), row["track"], also, row["version"], settings, needs)
    Screen().print(table)


def show_realisations(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print realisations: name, what they are, and dials with their defaults."""
    table = plain_table("realisation", "what it is", "dials")
    for row in rows:
        table.add_row(Text(row["name"], "cyan"), Text(row["says"]), Text(_defaults(row["dials"])))
    Screen().print(table)


def show_dials(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print dials: name, what they change, and the realisations that they stand for."""
    table = plain_table("dial", "what it changes", "realisations")
    for row in rows:
        table.add_row(Text(row["name"], "cyan"), Text(row["says"]), Text(", ".join(row["realisations"])))
    Screen().print(table)


def _defaults(settings: Mapping[str, Any]) -> str:
    return ", ".join(name if value is None else f"{name}={value}" for name, value in settings.items())


def _named(name: str, settings: str) -> str:
    """A name with the settings that JSON has, as they are typed."""
    from tracr.lab.choices import Configured

    return str(Configured(name, json.loads(settings)))


def show_standings(standings: Sequence[Standing]) -> None:
    """Print the scores of each method on each realisation."""
    names = list(standings[0].scores) if standings else []
    table = plain_table(
        "realisation", "method", *(name.replace("_", " ") for name in names), "cases", "rows", "left out"
    )
    for one in standings:
        scores = [str(one.scores[name] or "-") for name in names]
        cases = max((estimate.cases for estimate in one.scores.values() if estimate), default=0)
        what = (_named(one.realisation, one.dials), _named(one.method, one.settings))
        table.add_row(Text(what[0], "cyan"), Text(what[1]), *scores, str(cases), str(one.rows), _left_out(one))
    Screen().print(table)


def _left_out(one: Standing) -> str:
    counts = {
        "failed": one.failed,
        "not admitted": one.not_admitted,
        **{f"{name} undefined": number for name, number in one.undefined.items()},
    }
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)


def show_errors(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print each error once, with the number of rows and one of them."""
    failed = [row for row in rows if row["status"] != "done"]
    first = {row["error"]: row for row in reversed(failed)}
    for error, number in Counter(row["error"] for row in failed).most_common():
        row = first[error]
        where = f"{row['case']}, {_named(row['realisation'], row['dials'])}, seed {row['seed']}"
        print(f"{number} rows, such as {row['method']} on {where}:\n  {error}")


def as_cells(one: Standing) -> dict[str, Any]:
    """A standing as one row of a table."""
    cells: dict[str, Any] = {
        "realisation": one.realisation,
        "dials": one.dials,
        "method": one.method,
        "version": one.version,
        "settings": one.settings,
    }
    for name, estimate in one.scores.items():
        for part in ("mean", "low", "high", "cases", "values"):
            cells[f"{name}_{part}"] = getattr(estimate, part) if estimate else None
        cells[f"{name}_undefined"] = one.undefined[name]
    return {**cells, **{name: getattr(one, name) for name in COUNTS}}


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Standings, as `as_cells` gives them, as CSV with a header; a score that a row does not have is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
