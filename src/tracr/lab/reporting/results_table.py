"""The rows of a run, checked, with short names for methods and realisations; the edges of a row are kept once.

A row counts for the scores if it is done and its model was admitted. Nothing else is left out silently: the numbers of
failed rows, of rows of models that were not admitted, of undefined scores and of repeated rows are kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from tracr.errors import FormatError
from tracr.lab.choices import Configured
from tracr.lab.finding import ALL_METHODS
from tracr.lab.leaderboard import STANDING_KEY, Standing, standings
from tracr.lab.realising import REALISATIONS
from tracr.lab.reporting.row_checks import check_row, conditions_of
from tracr.lab.reporting.top_edges import TopEdges, top_edges
from tracr.lab.rows import KEY, SCORES

__all__ = [
    "SCORE_NAMES",
    "ResultRow",
    "ResultTable",
    "RowTable",
    "method_label",
    "method_order",
    "realisation_order",
    "result_table",
]

SCORE_NAMES = {
    "auroc": "AUROC",
    "average_precision": "average precision",
    "precision_at_size": "precision at size",
    "exact": "exact",
    "cpr": "CPR",
    "cmd": "CMD",
}
"""The scores of a table, as they are written; a smaller CMD is better, a larger value of all others."""
LISTS = ("missed", "extra", "edges", "truth", "unread")
NOT_MADE = "not made:"  # before the reason for which a realisation of a case was refused
HEAVY = frozenset((*LISTS, "numbers", "top"))


@dataclass(frozen=True)
class ResultRow:
    """A row of the table of results.

    Args:
        method, realisation: names with settings that differ from the defaults, and with dials.
        case, seed, digest, error: as in the table; `error` is "" if the row is done.
        admitted: whether the model was admitted, so that its truth is known.
        scores: by name; `None` where a score is undefined.
        passes: forward and backward passes together.
        candidates: all edges of the model.
        alone, jointly, inert: the edges needed alone, those needed jointly, and those not needed.
        missed, extra: needed edges that were not found, and inert ones that were.
        top: the edges at the top of the ranking.
        unread: edges that do not lead to the case's output: of decoys, of another program; `None` if the table does
            not say.
    """

    method: str
    realisation: str
    case: str
    seed: int
    digest: str
    error: str
    admitted: bool
    scores: Mapping[str, float | None]
    passes: int
    candidates: tuple[str, ...]
    alone: tuple[str, ...]
    jointly: tuple[str, ...]
    inert: tuple[str, ...]
    missed: tuple[str, ...]
    extra: tuple[str, ...]
    top: TopEdges
    unread: frozenset[str] | None

    @property
    def outcome(self) -> str:
        """What became of the row: "scored", "failed", "not made" or "not admitted"."""
        if not self.admitted:
            return "not admitted"
        if self.error:
            return "not made" if self.error.startswith(NOT_MADE) else "failed"
        return "scored"

    @property
    def scored(self) -> bool:
        """Whether the row counts for the scores."""
        return self.outcome == "scored"

    @property
    def found(self) -> frozenset[str]:
        """The edges that the method found, however ties are broken; those needed jointly count neither way."""
        return frozenset(self.alone) - frozenset(self.missed) | frozenset(self.extra) - self.top.border

    def reported_share(self, edges: frozenset[str]) -> float | None:
        """The expected share of inert or jointly needed edges that were found, if ties are broken at random."""
        reported = edges.intersection(self.extra) | edges.intersection(self.top.jointly)
        tied = len(reported & self.top.border)
        return (len(reported) - tied + self.top.share * tied) / len(edges) if edges else None


class NamedRow(Protocol):
    """A row of any track."""

    @property
    def method(self) -> str:
        """The name, with settings that differ from the defaults."""

    @property
    def realisation(self) -> str:
        """The name, with dials."""

    @property
    def case(self) -> str:
        """The name."""


Row = TypeVar("Row", bound=NamedRow)


class RowTable(Generic[Row]):
    """What the tables of all tracks share: rows, each once, and `light`, the same rows as they were given."""

    rows: tuple[Row, ...]
    light: tuple[Mapping[str, Any], ...]

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
    def standings(self) -> Mapping[tuple[str, str], Standing]:
        """The standing of each (realisation, method), in order."""
        names = {
            tuple(given[name] for name in STANDING_KEY): (row.realisation, row.method)
            for given, row in zip(self.light, self.rows, strict=True)
        }
        found = {names[tuple(getattr(one, name) for name in STANDING_KEY)]: one for one in standings(self.light)}
        return {key: found[key] for key in self.cells}

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], tuple[Row, ...]]:
        """The rows of each (realisation, method), in order."""
        groups: dict[tuple[str, str], list[Row]] = {
            (realisation, method): [] for realisation in self.realisations for method in self.methods
        }
        for row in self.rows:
            groups[row.realisation, row.method].append(row)
        return {key: tuple(rows) for key, rows in groups.items() if rows}


@dataclass(frozen=True, eq=False)
class ResultTable(RowTable[ResultRow]):
    """The rows of a table of results.

    Args:
        rows: each row once.
        repeated: how many rows were left out because the same run is there already.
        conditions: track, pairs, ablation and granularity, the same in all rows.
        same_pairs: whether all seeds have the same pairs.
        light: the rows as they were given, without lists.
    """

    rows: tuple[ResultRow, ...]
    repeated: int
    conditions: Mapping[str, Any]
    same_pairs: bool
    light: tuple[Mapping[str, Any], ...]

    @cached_property
    def scored(self) -> tuple[ResultRow, ...]:
        """The rows that count for the scores."""
        return tuple(row for row in self.rows if row.scored)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, sorted."""
        return tuple(sorted({row.seed for row in self.rows}))


def method_order(label: str) -> tuple[int, str]:
    """By name as in the registry, then by settings; methods of users come last."""
    name, known = label.partition(" ")[0].partition(":")[0], list(ALL_METHODS)
    return (known.index(name) if name in known else len(known)), label


def realisation_order(label: str) -> tuple[int, list[tuple[int, float, str]]]:
    """By name as usual, then by dials; numbers as numbers."""
    name, *dials = label.split(":")
    known = list(REALISATIONS)
    parts = []
    for dial in dials:
        setting, _, value = dial.partition("=")
        try:
            parts.append((0, float(value), setting))
        except ValueError:
            parts.append((1, 0.0, dial))
    return (known.index(name) if name in known else len(known)), parts


def result_table(rows: Iterable[Mapping[str, Any]]) -> ResultTable:
    """Check rows as `tracr.lab.read_results` gives them; a `FormatError` names the first wrong one."""
    seen: set[tuple[Any, ...]] = set()
    lists: dict[tuple[str, ...], tuple[str, ...]] = {}
    kept: list[Mapping[str, Any]] = []
    repeated = 0
    for number, row in enumerate(rows):
        check_row(number, row)
        key = tuple(row[name] for name in KEY)
        repeated += key in seen
        if key not in seen:
            seen.add(key)
            shared = {name: _shared(row.get(name), lists) for name in LISTS}
            texts = {name: _readable(value) for name, value in row.items() if isinstance(value, str)}
            kept.append({**row, **texts, **shared, "numbers": None, "top": top_edges(row)})
    if not kept:
        raise FormatError("the table of results has no rows", hint="run `tracr lab run -o FOLDER` first")
    versions: dict[tuple[str, str], set[str]] = {}
    for row in kept:
        versions.setdefault((row["method"], row["settings"]), set()).add(row["version"])
    found = tuple(_row(row, len(versions[row["method"], row["settings"]]) > 1) for row in kept)
    light = tuple({name: row[name] for name in row if name not in HEAVY} for row in kept)
    return ResultTable(found, repeated, conditions_of(kept), len({row["pairs_seed"] for row in kept}) == 1, light)


def _readable(text: str) -> str:
    """A text that UTF-8 can write: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _shared(values: Sequence[str] | None, lists: dict[tuple[str, ...], tuple[str, ...]]) -> tuple[str, ...] | None:
    """A list as a tuple, the same object for equal lists."""
    if values is None:
        return None
    key = tuple(values)
    return lists.setdefault(key, key)


def _row(row: Mapping[str, Any], several_versions: bool) -> ResultRow:
    done = row["status"] == "done"
    kinds: dict[str, list[str]] = defaultdict(list)
    for edge, kind in zip(row["edges"] or (), row["truth"] or (), strict=True):
        kinds[kind].append(edge)
    return ResultRow(
        method_label(row, several_versions),
        str(Configured(row["realisation"], json.loads(row["dials"]))),
        row["case"],
        row["seed"],
        row["model_digest"] or "",
        "" if done else row["error"] or "an error without a message",
        row["admitted"] is not False,
        _scores(row) if done else {},
        sum(row[name] or 0 for name in ("forward_passes", "backward_passes")),
        row["edges"] or (),
        tuple(kinds["alone"]),
        tuple(kinds["jointly"]),
        tuple(kinds["inert"]),
        row["missed"] or (),
        row["extra"] or (),
        row["top"],
        None if row.get("unread") is None else frozenset(row["unread"]),
    )


def _scores(row: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: None if row[name] is None else float(row[name]) for name in SCORES}


def method_label(row: Mapping[str, Any], several_versions: bool) -> str:
    """The method with the settings that differ from its defaults, and its version if there are several."""
    settings = json.loads(row["settings"])
    if row["method"] in ALL_METHODS:
        usual = ALL_METHODS[row["method"]].settings
        settings = {name: value for name, value in settings.items() if name not in usual or usual[name] != value}
    label = str(Configured(row["method"], settings))
    return f"{label} (version {row['version']})" if several_versions else label
