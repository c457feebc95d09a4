"""The rows of a run of the track "variables", checked, with short names for methods and realisations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tracr.errors import FormatError
from tracr.lab.choices import Configured
from tracr.lab.reporting.results_table import RowTable, method_label
from tracr.lab.reporting.row_checks import conditions_of
from tracr.lab.rows import KEY
from tracr.lab.track import VARIABLES

__all__ = ["VariableRow", "VariableTable", "variable_table"]


@dataclass(frozen=True)
class VariableRow:
    """A row of the table of results; `method` and `realisation` are names with settings and dials."""

    method: str
    realisation: str
    case: str
    seed: int
    given: Mapping[str, Any]

    @property
    def scored(self) -> bool:
        """Whether the row counts for the scores."""
        return self.given["status"] == "done" and self.given["admitted"] is True


@dataclass(frozen=True, eq=False)
class VariableTable(RowTable[VariableRow]):
    """The rows of the track of variables."""

    rows: tuple[VariableRow, ...]
    light: tuple[Mapping[str, Any], ...]
    conditions: Mapping[str, Any]


def variable_table(rows: Iterable[Mapping[str, Any]]) -> VariableTable:
    """Check rows as `tracr.lab.read_results` gives them; a `FormatError` names the first wrong one."""
    kept: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for number, row in enumerate(rows):
        missing = [name for name in VARIABLES.columns if name not in row]
        if missing:
            raise FormatError(
                f"row {number} has no column {missing[0]}", hint="name the folder that `tracr lab run` wrote"
            )
        if row["track"] != VARIABLES.name:
            raise FormatError(f"row {number} is of the track {row['track']}", hint="report each run by itself")
        kept.setdefault(tuple(row[name] for name in KEY), row)
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in kept.values():
        versions[row["method"], row["settings"]].add(row["version"])
    found = tuple(
        VariableRow(
            method_label(row, len(versions[row["method"], row["settings"]]) > 1),
            str(Configured(row["realisation"], json.loads(row["dials"]))),
            row["case"],
            row["seed"],
            row,
        )
        for row in kept.values()
    )
    return VariableTable(found, tuple(kept.values()), conditions_of(list(kept.values())))
