"""The standings of methods: mean scores per method and realisation, from the rows of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracr.compress.store import PARTS, RESULTS
from tracr.errors import FormatError, InputError
from tracr.extras import need
from tracr.lab.bootstrap import Estimate, hierarchical_bootstrap
from tracr.lab.realising import REALISATIONS
from tracr.lab.track import EDGES, TRACKS

__all__ = ["STANDING_KEY", "Standing", "iterate_results", "read_results", "standings"]

STANDING_KEY = ("realisation", "dials", "method", "version", "settings")
"""The columns that all rows of a standing share."""


@dataclass(frozen=True)
class Standing:
    """The scores of a method on a realisation.

    Args:
        method, version, settings, realisation, dials: of which rows.
        scores: the estimate of each score; `None` if it is undefined in all rows.
        undefined: for each score, in how many rows it is undefined.
        rows: how many rows were scored.
        failed: how many rows have an error.
        not_admitted: how many rows are of twins that were not admitted; they are not scored.
        seconds: the mean time of a run.
    """

    method: str
    version: str
    settings: str
    realisation: str
    dials: str
    scores: Mapping[str, Estimate | None]
    undefined: Mapping[str, int]
    rows: int
    failed: int
    not_admitted: int
    seconds: float | None


def read_results(folder: str | Path) -> list[dict[str, Any]]:
    """The rows that a run wrote into a folder, also if it has not finished; or those of a Parquet file."""
    return list(iterate_results(folder))


def iterate_results(folder: str | Path, without: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """The same rows one by one, without some columns; one file is in memory at a time."""
    path = Path(folder)
    files = [path] if path.is_file() else sorted((path / PARTS).glob("*.parquet"))
    if not files and (path / RESULTS).is_file():
        files = [path / RESULTS]
    if not files:
        raise InputError(f"there are no results in {folder}", hint="name the folder that `tracr lab run -o` wrote")
    for file in files:
        yield from _rows_of(file, without)


def _rows_of(file: Path, without: Collection[str]) -> Iterator[dict[str, Any]]:
    parquet, arrow = need("pyarrow.parquet", "lab"), need("pyarrow", "lab")
    try:
        names = parquet.read_schema(file).names
        if not {"track", "method", "realisation", "seed"} <= {*names}:
            raise InputError(f"{file} is not a table of `tracr lab run`", hint="name the folder that it wrote")
        read = parquet.read_table(file, columns=[name for name in names if name not in without])
    except (arrow.ArrowException, OSError) as error:
        raise FormatError(
            f"{file} cannot be read: {str(error).splitlines()[0]}",
            hint="delete this file and run the same command again",
        ) from error
    for batch in read.to_batches(max_chunksize=1_000):
        yield from batch.to_pylist()


def standings(rows: Iterable[Mapping[str, Any]], *, draws: int = 2_000, seed: int = 0) -> list[Standing]:
    """The standing of each method on each realisation: realisations in their usual order, the best first score first.

    All rows are of one track.
    """
    rows = list(rows)
    track = TRACKS.get(rows[0]["track"], EDGES) if rows else EDGES
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in STANDING_KEY)].append(row)
    found = [_standing(key, group, track.scores, draws, seed) for key, group in sorted(groups.items())]
    order = list(REALISATIONS)

    def rank(one: Standing) -> tuple[int, str, float]:
        leading = one.scores[track.scores[0]]
        place = order.index(one.realisation) if one.realisation in order else len(order)
        return place, one.dials, -(leading.mean if leading else -1.0)

    return sorted(found, key=rank)


def _standing(
    key: tuple[str, ...], rows: list[Mapping[str, Any]], names: tuple[str, ...], draws: int, seed: int
) -> Standing:
    realisation, dials, method, version, settings = key
    done = [row for row in rows if row["status"] == "done"]
    scored = [row for row in done if row["admitted"]]
    refused = sum(row["status"] != "done" and row["admitted"] is False for row in rows)
    scores, undefined = {}, {}
    for name in names:
        by_case: dict[str, list[float]] = defaultdict(list)
        for row in scored:
            if row[name] is not None:
                by_case[row["case"]].append(float(row[name]))
        scores[name] = hierarchical_bootstrap(by_case, draws=draws, seed=seed) if by_case else None
        undefined[name] = len(scored) - sum(map(len, by_case.values()))
    return Standing(
        method,
        version,
        settings,
        realisation,
        dials,
        scores,
        undefined,
        len(scored),
        len(rows) - len(done) - refused,
        len(done) - len(scored) + refused,
        sum(row["seconds"] for row in scored) / len(scored) if scored else None,
    )
