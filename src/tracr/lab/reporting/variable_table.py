"""The rows of a run of the track "variables", checked, with short names for methods and realisations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracr.errors import FormatError
from tracr.lab.choices import Configured
from tracr.lab.leaderboard import STANDING_KEY, Standing, standings
from tracr.lab.reporting.results_table import method_label, method_order, realisation_order
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
class VariableTable:
    """The rows, each once; `light` has them as they were given."""

    rows: tuple[VariableRow, ...]
    conditions: Mapping[str, Any]

    @property
    def light(self) -> tuple[Mapping[str, Any], ...]:
        """The rows as they were given."""
        return tuple(row.given for row in self.rows)

    @cached_property
    def realisations(self) -> tuple[str, ...]:
        """Their names, in their usual order."""
        return tuple(sorted({row.realisation for row in self.rows}, key=realisation_order))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Their names, in the order of the registry; others come last."""
        return tuple(sorted({row.method for row in self.rows}, key=method_order))

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """Their names, sorted."""
        return tuple(sorted({row.case for row in self.rows}))

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], tuple[VariableRow, ...]]:
        """The rows of each (realisation, method), in order."""
        groups: dict[tuple[str, str], list[VariableRow]] = defaultdict(list)
        for row in self.rows:
            groups[row.realisation, row.method].append(row)
        keys = ((realisation, method) for realisation in self.realisations for method in self.methods)
        return {key: tuple(groups[key]) for key in keys if groups[key]}

    @cached_property
    def standings(self) -> Mapping[tuple[str, str], Standing]:
        """The standing of each (realisation, method), in order."""
        names = {tuple(row.given[name] for name in STANDING_KEY): (row.realisation, row.method) for row in self.rows}
        found = {names[tuple(getattr(one, name) for name in STANDING_KEY)]: one for one in standings(self.light)}
        return {key: found[key] for key in self.cells}


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
    return VariableTable(found, conditions_of(list(kept.values())))
