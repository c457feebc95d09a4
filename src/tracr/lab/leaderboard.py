"""The standings of methods: mean scores per method and realisation, from the rows of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracr.compress.store import PARTS
from tracr.errors import InputError
from tracr.extras import need
from tracr.lab.bootstrap import Estimate, hierarchical_bootstrap
from tracr.lab.realising import REALISATIONS
from tracr.lab.rows import SCORES

__all__ = ["Standing", "read_results", "standings"]


@dataclass(frozen=True)
class Standing:
    """The scores of a method on a realisation.

    Args:
        method, settings, realisation, dials: of which rows.
        scores: the estimate of each score; `None` if it is undefined in all rows.
        undefined: for each score, in how many rows it is undefined.
        rows: how many rows were scored.
        failed: how many rows have an error.
        not_admitted: how many rows are of twins that were not admitted; they are not scored.
        seconds: the mean time of a run.
    """

    method: str
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
    path = Path(folder)
    files = [path] if path.is_file() else sorted((path / PARTS).glob("*.parquet"))
    if not files:
        raise InputError(f"there are no results in {folder}", hint="name the folder that `tracr lab run -o` wrote")
    parquet = need("pyarrow.parquet", "sweep")
    found: list[dict[str, Any]] = [row for file in files for row in parquet.read_table(file).to_pylist()]
    if found and not {"method", "realisation", "auroc"} <= found[0].keys():
        raise InputError(f"{folder} is not a table of `tracr lab run`", hint="name the folder that it wrote")
    return found


def standings(rows: Iterable[Mapping[str, Any]], *, draws: int = 2_000, seed: int = 0) -> list[Standing]:
    """The standing of each method on each realisation: realisations in their usual order, best AUROC first."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["realisation"], row["dials"], row["method"], row["settings"]].append(row)
    found = [_standing(key, group, draws, seed) for key, group in sorted(groups.items())]
    order = list(REALISATIONS)

    def rank(one: Standing) -> tuple[int, str, float]:
        auroc = one.scores["auroc"]
        place = order.index(one.realisation) if one.realisation in order else len(order)
        return place, one.dials, -(auroc.mean if auroc else -1.0)

    return sorted(found, key=rank)


def _standing(key: tuple[str, ...], rows: list[Mapping[str, Any]], draws: int, seed: int) -> Standing:
    realisation, dials, method, settings = key
    done = [row for row in rows if row["status"] == "done"]
    scored = [row for row in done if row["admitted"]]
    refused = sum(row["status"] != "done" and row["admitted"] is False for row in rows)
    scores, undefined = {}, {}
    for name in SCORES:
        by_case: dict[str, list[float]] = defaultdict(list)
        for row in scored:
            if row[name] is not None:
                by_case[row["case"]].append(float(row[name]))
        scores[name] = hierarchical_bootstrap(by_case, draws=draws, seed=seed) if by_case else None
        undefined[name] = len(scored) - sum(map(len, by_case.values()))
    return Standing(
        method,
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
