"""Unseen twins, ranked by a rule and in an order that were fixed before: the numbers of docs/replacing.md.

    python benchmarks/unseen_twins.py ROWS TWINS -o docs/replacing/twins_unseen.json
    python benchmarks/unseen_twins.py docs/replacing/twins_unseen.json --table

ROWS are those of `benchmarks/replacing.py --rank-only --shuffle` (and `--report`, `--compare`), TWINS the results of
`benchmarks/twins.py`. The file that is written has the rows in the order in which components were to be examined, with
a short row for every component of an admitted twin that was not finished.

--table prints the numbers: for all components that were finished, and for the first ones of the order, up to the first
that was not finished. Slow components are as frequent among these as among all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from replacing import kept, place_in_order, teacher_of
from replacing_tables import COSTS, EQUAL, WANTED, equality, misses, of, recovered, senses

from tracr import graft

Row = dict[str, Any]


def with_unfinished(rows: list[Row], twins: list[Row]) -> list[Row]:
    """The rows in the order of the plan, with a short one for each component that has none."""
    found = {(row["twin"], row["at"]): row for row in rows}
    for twin in twins:
        if twin["admitted"]:
            parts = graft.parts_of(teacher_of(twin["program"]))
            for at in (one.name for one in parts if one.kind == "head" or one.name.endswith(".mlp")):
                key = (f"{twin['program']}-{twin['seed']}", at)
                found.setdefault(key, dict(zip(("twin", "at"), key, strict=True)))
    return sorted(found.values(), key=lambda row: place_in_order((Path(row["twin"]), row["at"])))


def finished(row: Row) -> bool:
    """Whether a component was examined."""
    return "cost" in row


def complete(row: Row) -> bool:
    """Whether the true part recovers 99 %."""
    return recovered(row) >= WANTED


def first(row: Row) -> bool:
    """Whether the first part of the ranking is the true one, or equal in the program."""
    return equality(row) <= EQUAL.index("equal in the program")


CLAIMS: dict[str, Callable[[Row], bool]] = {
    "the true part recovers at least 99 %": complete,
    "the true part, or one equal in the program, is first": first,
    "both": lambda row: complete(row) and first(row),
    "the replacement beats every control": lambda row: bool(row["counts"]),
}


def table(rows: list[Row]) -> str:
    """The numbers that were decided in advance."""
    done = [row for row in rows if finished(row)]
    costly, prefix = costly_of(done), costly_of(list(takewhile(finished, rows)))
    twins = {row["twin"] for row in rows}
    lines = [
        f"{len(done)} of {len(rows)} components of {len(twins)} twins of {len({program(row) for row in rows})} programs"
        f" were finished, {len(list(takewhile(finished, rows)))} of them before the first that was not. "
        f"{len(costly)} of {len(done)} cost at least 5 points.",
        "",
        "| claim | all finished | 95 % interval | the first of the order | 95 % interval |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, holds in CLAIMS.items():
        groups = ([row for row in some if name != list(CLAIMS)[-1] or "counts" in row] for some in (costly, prefix))
        cells = [
            cell for group in groups for cell in (of([row for row in group if holds(row)], group), spread(group, holds))
        ]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join([*lines, "", senses(costly), "", misses(costly), "", incomplete(costly)])


def costly_of(rows: list[Row]) -> list[Row]:
    """The components whose ablation costs at least 5 points."""
    return [row for row in rows if row["cost"] >= COSTS]


def program(row: Row) -> str:
    """The program of a row's twin."""
    return str(row["twin"]).rpartition("-")[0]


def spread(rows: list[Row], holds: Callable[[Row], bool]) -> str:
    """An interval of a share by bootstrap over programs, because twins of one program err alike."""
    groups: dict[str, list[bool]] = {}
    for row in rows:
        groups.setdefault(program(row), []).append(holds(row))
    if not groups:
        return "-"
    counts = np.array([(sum(group), len(group)) for group in groups.values()])
    drawn = counts[np.random.default_rng(0).integers(len(counts), size=(10_000, len(counts)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    return f"{low:.1%} to {high:.1%}"


def incomplete(rows: list[Row]) -> str:
    """Every component whose true part recovers less than 99 %."""
    lines = [
        "| twin | component | cost | in closed form | refined | first in the ranking |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if not complete(row):
            shares = [
                f"{row[kind]['value']:.4f} [{row[kind]['low']:.3f}, {row[kind]['high']:.3f}]"
                for kind in ("closed", "refined")
            ]
            lines.append(
                f"| {row['twin']} | {row['at']} | {row['cost']:.2f} | {' | '.join(shares)} | {place_of(row)} |"
            )
    return "\n".join(lines)


def place_of(row: Row) -> str:
    """In which sense the first part is the true one."""
    level = equality(row)
    return EQUAL[level] if level < len(EQUAL) else "**no**"


def main() -> None:
    """Order the rows, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("twins", type=Path, nargs="?")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    rows = json.loads(given.rows.read_text())
    if given.twins:
        rows = with_unfinished(rows, json.loads(given.twins.read_text()))
    if given.out:
        kept(rows, given.out)
    if given.table:
        print(table(rows))


if __name__ == "__main__":
    main()
