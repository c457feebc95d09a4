"""Refuses rows that `tracr lab run` cannot have written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tracr.errors import FormatError
from tracr.lab.rows import COLUMNS, SCORES

__all__ = ["check_row", "conditions_of"]


def check_row(number: int, row: Any) -> None:
    """Refuse a row that `tracr lab run` cannot have written."""
    if not isinstance(row, Mapping):
        raise FormatError(f"row {number} is no row of a table", hint="pass what `lab.read_results` gives")
    missing = [name for name in COLUMNS if name not in row and name != "unread"]
    if missing:
        raise FormatError(f"row {number} has no column {missing[0]}", hint="name the folder that `tracr lab run` wrote")
    problem = _problem(row)
    if problem:
        raise FormatError(f"row {number} ({row['method']} on {row['case']}): {problem}", hint="run this row again")


def _problem(row: Mapping[str, Any]) -> str:
    for name in ("method", "version", "settings", "case", "realisation", "dials", "status", "granularity", "ablation"):
        if not isinstance(row[name], str):
            return f"{name} is {row[name]!r}, not text"
    for name in ("settings", "dials"):
        try:
            if not isinstance(json.loads(row[name]), dict):
                return f"{name} is not a JSON object"
        except ValueError:
            return f"{name} is not JSON"
    if not isinstance(row["seed"], int):
        return f"seed is {row['seed']!r}, not a whole number"
    if row["status"] not in ("done", "failed"):
        return f"status is {row['status']!r}, neither done nor failed"
    return "" if row["status"] == "failed" else _problem_of_scores(row)


def _problem_of_scores(row: Mapping[str, Any]) -> str:
    for name in SCORES:
        value = row[name]
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            return f"{name} is {value!r}, not a finite number"
    if not isinstance(row["admitted"], bool):
        return f"admitted is {row['admitted']!r}, neither true nor false"
    for name in ("missed", "extra", "edges", "truth"):
        if not isinstance(row[name], Sequence) or not all(isinstance(edge, str) for edge in row[name]):
            return f"{name} is not a list of text"
    if any(edge.count("->") != 1 for edge in row["edges"]):
        return "edges are not of the form writer->reader"
    if len(row["edges"]) != len(row["truth"]):
        return f"there are {len(row['edges'])} edges but {len(row['truth'])} kinds"
    if not {*row["missed"], *row["extra"]} <= {*row["edges"]}:
        return "an edge that was missed or is extra is no candidate"
    return ""


def conditions_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The conditions of all rows; a table of several is refused."""
    found: dict[str, Any] = {}
    for name in ("track", "pairs", "ablation", "granularity"):
        values = sorted({str(row[name]) for row in rows})
        if len(values) > 1:
            raise FormatError(
                f"the rows have different {name}: {' and '.join(values[:2])}", hint="report each run by itself"
            )
        found[name] = rows[0][name]
    return found
