"""Numbers and tables of rankings of known answers (`replacing.py`), for docs/replacing.md."""

from __future__ import annotations

from typing import Any

import numpy as np

COSTS, WANTED = 0.05, 0.99


def recovered(row: dict[str, Any]) -> float:
    """The share that the true part recovers, refined if need be; of a row without a report, in the ranking."""
    if "closed" not in row:
        return float(next((one["recovered"] for one in row["ranking"] if one["true"]), None) or 0.0)
    return float(row.get("refined", row["closed"])["value"])


EQUAL = (
    "the same",
    "at each position",
    "at each position and length",
    "equal in the program",
    "the host tells no difference",
)


def equality(row: dict[str, Any]) -> int:
    """The number of the sense in which the first part is the true one; `len(EQUAL)` if in none."""
    first, true = row["ranking"][0], next((one for one in row["ranking"] if one["true"]), None)
    for number, name in enumerate(("same", "same_at_positions", "same_at_lengths")):
        if first.get(name):
            return number
    if in_program(first):
        return 3
    agree = (first.get(name, 0.0) + true.get(name, 0.0) - 1 if true else 0.0 for name in ("accuracy", "swapped"))
    return 4 if min(agree) >= WANTED else len(EQUAL)


def in_program(one: dict[str, Any]) -> bool:
    """Whether a part of a ranking was compared, and the teacher's program cannot tell it from the true one."""
    found = one.get("in_program")
    return found is not None and not found["says_more"] and not found["noticed"]


def overview(samples: dict[str, list[dict[str, Any]]]) -> str:
    """A line for each sample of twins: components that matter, and what holds of how many."""
    lines = [
        "| twins | number, programs | components that cost 5 points | true part recovers 99 % "
        "| it, or one equal in the program, is first | beats every control |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, rows in samples.items():
        costly = [row for row in rows if "ranking" in row]
        told = [row for row in costly if "counts" in row]
        twins = {row["twin"] for row in rows}
        cells = [
            name,
            f"{len(twins)}, {len({twin.rpartition('-')[0] or twin for twin in twins})}",
            f"{len(costly)} of {len(rows)}",
            of([row for row in costly if recovered(row) >= WANTED], costly),
            of([row for row in costly if equality(row) <= EQUAL.index("equal in the program")], costly),
            of([row for row in told if row["counts"]], told) if told else "-",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table(rows: list[dict[str, Any]]) -> str:
    """The shares, and every row whose first part is not the true one at each position."""
    costly = [row for row in rows if row["cost"] >= COSTS and "ranking" in row]
    right = [row for row in costly if recovered(row) >= WANTED]
    twins = len({row["twin"] for row in rows})
    closed = sum(row["closed"]["value"] >= WANTED for row in costly if "closed" in row)
    told = [row for row in costly if "counts" in row]
    chance, rivals = drawn(costly)
    lines = [
        f"{len(costly)} of {len(rows)} components of {twins} twins cost at least 5 points.",
        f"The true part recovers at least 99 % of {of(right, costly)}: {closed} in closed form, the others refined.",
        f"The replacement beats every control for {of([row for row in told if row['counts']], told)}.",
        f"A part drawn from those of a ranking that recover 99 % is equal in the program for {chance:.1%}.",
        f"Of those that do not have the true output at each position and length, {of(*rivals)} are.",
        "",
        senses(costly),
        "",
        f"Equal in the program: {interval(costly)} (95 % bootstrap over programs).",
        "",
        misses(costly),
    ]
    return "\n".join(lines)


SENSES = (
    "the true one, or has the same output up to renaming",
    "... at each position",
    "... at each position of inputs of each length",
    "... or is equal in the program",
    "... or the host tells no difference",
)


def senses(rows: list[dict[str, Any]]) -> str:
    """How many first parts are the true one, in each sense; of all twins and of each seed."""
    seeds = sorted({seed_of(row) for row in rows})
    lines = [
        "| ".join(["| the first part is ", "components ", *(f"seed {seed} " for seed in seeds)]) + "|",
        "| --- " * (2 + len(seeds)) + "|",
    ]
    for number, name in enumerate(SENSES):
        groups = [rows, *([row for row in rows if seed_of(row) == seed] for seed in seeds)]
        found = [of([row for row in group if equality(row) <= number], group) for group in groups]
        lines.append(f"| {' | '.join([name, *found])} |")
    return "\n".join(lines)


def interval(rows: list[dict[str, Any]]) -> str:
    """An interval of the share of first parts that are equal in the program; all components of a program are drawn
    together, because twins of one program err alike."""
    groups: dict[str, list[bool]] = {}
    for row in rows:
        groups.setdefault(row["twin"].rpartition("-")[0], []).append(
            equality(row) <= EQUAL.index("equal in the program")
        )
    counts = np.array([(sum(group), len(group)) for group in groups.values()])
    drawn = counts[np.random.default_rng(0).integers(len(counts), size=(10_000, len(counts)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    return f"{low:.1%} to {high:.1%}"


def seed_of(row: dict[str, Any]) -> str:
    """The seed of a row's twin."""
    return str(row["twin"]).rpartition("-")[2]


def misses(rows: list[dict[str, Any]]) -> str:
    """Every row whose first part is not the true one at each position."""
    lines = [
        "| twin | component | first in the ranking | which is | place of the true part | equal |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *(line(row) for row in rows if equality(row) > 1)])


def drawn(rows: list[dict[str, Any]]) -> tuple[float, tuple[list[Any], list[Any]]]:
    """What chance gives: the mean share of the parts that recover 99 % that are equal in the program; and those of them
    that are equal there only, of those that do not have the true output at each position and length."""
    groups = [[one for one in row["ranking"] if "in_program" in one] for row in rows]
    shares = [sum(in_program(one) for one in group) / len(group) for group in groups if group]
    others = [one for group in groups for one in group if not (one["true"] or one["same"] or one["same_at_lengths"])]
    others = [one for one in others if not one.get("same_at_positions")]
    return sum(shares) / max(1, len(shares)), ([one for one in others if in_program(one)], others)


def of(some: list[Any], every: list[Any]) -> str:
    """How many of how many."""
    return f"{len(some)} of {len(every)} ({len(some) / max(1, len(every)):.1%})"


def line(row: dict[str, Any]) -> str:
    """A row of the table of misses."""
    first, level = row["ranking"][0], equality(row)
    place = next((str(number) for number, one in enumerate(row["ranking"], 1) if one["true"]), "not tried")
    if first["told_by_true"] == 1.0:
        kind = "a function of the true output"
    else:
        kind = "tells the true output" if first["tells_true"] == 1.0 else "another function"
    same = EQUAL[level] if level < len(EQUAL) else "**no**"
    return f"| {row['twin']} | {row['at']} | {first['part']} | {kind} | {place} | {same} |"
