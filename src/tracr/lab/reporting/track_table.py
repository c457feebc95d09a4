"""The rows of a run of a track other than "edges", checked, with short names for methods and realisations."""

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
from tracr.lab.track import Track

__all__ = ["TrackRow", "TrackTable", "track_table"]


@dataclass(frozen=True)
class TrackRow:
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
class TrackTable(RowTable[TrackRow]):
    """The rows of a track."""

    rows: tuple[TrackRow, ...]
    light: tuple[Mapping[str, Any], ...]
    conditions: Mapping[str, Any]


def track_table(rows: Iterable[Mapping[str, Any]], track: Track) -> TrackTable:
    """Check rows as `tracr.lab.read_results` gives them; a `FormatError` names the first wrong one."""
    kept: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for number, row in enumerate(rows):
        missing = [name for name in track.columns if name not in row]
        if missing:
            raise FormatError(
                f"row {number} has no column {missing[0]}", hint="name the folder that `tracr lab run` wrote"
            )
        if row["track"] != track.name:
            raise FormatError(f"row {number} is of the track {row['track']}", hint="report each run by itself")
        kept.setdefault(tuple(row[name] for name in KEY), row)
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in kept.values():
        versions[row["method"], row["settings"]].add(row["version"])
    found = tuple(
        TrackRow(
            method_label(row, len(versions[row["method"], row["settings"]]) > 1),
            str(Configured(row["realisation"], json.loads(row["dials"]))),
            row["case"],
            row["seed"],
            row,
        )
        for row in kept.values()
    )
    return TrackTable(found, tuple(kept.values()), conditions_of(list(kept.values())))
