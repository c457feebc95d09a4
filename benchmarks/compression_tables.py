"""The tables of the pages on compression, from docs/compression/data (`benchmarks/compression_data.py`).

    python benchmarks/compression_tables.py           write the tables into the pages, between their marks
    python benchmarks/compression_tables.py NAME ...  print some tables

A page has `<!-- table NAME -->` and `<!-- end -->`; what is between them is replaced by `TABLES[NAME]`. Needs numpy and
pyarrow.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

from compression_data import (
    DATA,
    DOCS,
    GOLDEN,
    MIDDLE,
    PLACE,
    STUCK,
    Row,
    about,
    below,
    cell,
    chosen,
    per_rerun,
    rows_of,
    share,
)

PAGES = (DOCS / "compression.md", *(PLACE / f"{name}.md" for name in ("optimiser", "shared-information", "cost")))


def markdown(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def paper(program: str) -> str:
    """The paper's recipe, every d."""
    rows = chosen("paper", program=program)
    lines = []
    for dim in sorted({row["dim"] for row in rows}):
        some = [row for row in rows if row["dim"] == dim]
        lines.append(
            [
                dim,
                cell(some, "loss", ".2g"),
                per_rerun(some, "loss", ".1e"),
                f"{min(row['loss'] for row in some):.1e}",
                cell(some, "output_loss", ".2g"),
                cell(some, "accuracy", ".1%"),
                cell(some, "cosine", ".3f"),
                cell(some, "effect", ".2f"),
                f"{np.median([row['half_loss'] for row in some]):.2g}",
            ]
        )
    head = [
        "d",
        "loss",
        "of each rerun",
        "best",
        "output loss",
        "accuracy",
        "cosine",
        f"effect of `{MIDDLE[program]}`",
        "loss at half time",
    ]
    return markdown(head, lines) + f"\n\n{about(rows)}."


ARMS: tuple[tuple[str, Row], ...] = (
    ("the recipe", {}),
    ("start 1", {"start": "1.0"}),
    ("no decay", {"decay": 0.0}),
    ("start 1, no decay", {"start": "1.0", "decay": 0.0}),
    ("gap 100", {"gap": 100.0}),
    ("gap 40", {"gap": 40.0}),
    ("gap 40, start 1", {"gap": 40.0, "start": "1.0"}),
)
RECIPE: Row = {"start": "1/√D", "decay": 0.1, "gap": 256.0}


def arms_of(study: str, program: str, dim: int) -> list[tuple[str, list[Row]]]:
    """The runs of each arm of `settings`, `variants` or `sharing`. The recipe of `settings` is in `paper`; `sharing` is
    compared with one W of `variants`."""
    of = partial(chosen, study, program=program, dim=dim)
    if study == "settings":
        recipe = chosen("paper", program=program, dim=dim)
        return [(name, of(**(RECIPE | change)) if change else recipe) for name, change in ARMS]
    if study == "variants":
        pairs = sorted({(row["output_weight"], row["layer_weight"]) for row in rows_of(study)}, reverse=True)
        return [(f"{out:g}, {layer:g}", of(output_weight=out, layer_weight=layer)) for out, layer in pairs]
    return [
        ("one W", chosen("variants", program=program, dim=dim, output_weight=1.0, layer_weight=1.0)),
        ("one W per layer", of(sharing="layer")),
        ("one to read, one to write", of(sharing="read-write")),
        ("one W, weights trained", of(train_weights=True)),
    ]


def settings(program: str) -> str:
    """One setting changed at a time."""
    rows, whole = chosen("settings", program=program), chosen("paper", program=program)
    limit = STUCK if program == "frac_prevs" else 0.1
    lines = []
    for dim in sorted({row["dim"] for row in rows}):
        for name, some in arms_of("settings", program, dim):
            lines.append(
                [
                    dim,
                    name,
                    cell(some, "loss", ".2g"),
                    per_rerun(some, "loss", ".1e"),
                    f"{min(row['loss'] for row in some):.1e}",
                    cell(some, below(limit), ".0%", share),
                    cell(some, "accuracy", ".1%"),
                    cell(some, "effect", ".2f"),
                ]
            )
    head = [
        "d",
        "arm",
        "loss",
        "of each rerun",
        "best",
        f"runs below {limit:g}",
        "accuracy",
        f"effect of `{MIDDLE[program]}`",
    ]
    note = f"{about(rows)} per arm and d; of the recipe, {len({row['seed'] for row in whole})} seeds."
    return markdown(head, lines) + f"\n\n{note}"


def faithful(program: str) -> str:
    """Where the optimiser ends, for every start."""
    rows = chosen("faithful", program=program)
    lines = []
    starts = ("faithful", "1/√D", "1.0")
    for gap in sorted({row["gap"] for row in rows}, reverse=True):
        for start in starts:
            for rate, decay in sorted(
                {(row["rate"], row["decay"]) for row in rows if row["start"] == start}, reverse=True
            ):
                some = chosen("faithful", program=program, gap=gap, start=start, rate=rate, decay=decay)
                if some:
                    lines.append(
                        [
                            f"{gap:g}",
                            start.replace("1.0", "1"),
                            f"{rate:g}",
                            f"{decay:g}",
                            cell(some, "loss", ".2g"),
                            f"{np.median([row['half_loss'] for row in some]):.2g}",
                            cell(some, "accuracy", ".1%"),
                            cell(some, "least", ".2f"),
                            cell(some, "effect", ".2f"),
                        ]
                    )
    variable = MIDDLE.get(program)
    head = [
        "gap",
        "start",
        "rate",
        "decay",
        "loss",
        "at half time",
        "accuracy",
        "least cosine",
        f"effect of `{variable}`" if variable else "effect",
    ]
    return (
        markdown(head, lines)
        + f"\n\nd = {rows[0]['dim'] if rows else '?'}, D = {rows[0]['width'] if rows else '?'}; {about(rows)} in all."
    )


def variants(program: str) -> str:
    """Other weights of the losses."""
    rows = chosen("variants", program=program)
    lines = []
    for dim in sorted({row["dim"] for row in rows}):
        for name, some in arms_of("variants", program, dim):
            lines.append([dim, *name.split(", "), *_measures(some)])
    head = [
        "d",
        "weight of the output",
        "of the sub-layers",
        "output loss",
        "loss of sub-layers",
        "accuracy",
        "cosine",
        f"effect of `{MIDDLE[program]}`",
    ]
    return markdown(head, lines) + f"\n\n{about(rows)} per arm and d. Losses are without their weights."


def _measures(some: Sequence[Row]) -> list[str]:
    return [
        cell(some, "output_loss", ".2g"),
        cell(some, "layer_loss", ".2g"),
        cell(some, "accuracy", ".1%"),
        cell(some, "cosine", ".3f"),
        cell(some, "effect", ".2f"),
    ]


def sharing(program: str) -> str:
    """Other projections, beside one projection with the same steps."""
    lines = []
    rows = chosen("sharing", program=program)
    for dim in sorted({row["dim"] for row in rows}):
        lines += [[dim, name, *_measures(some)] for name, some in arms_of("sharing", program, dim) if some]
    head = [
        "d",
        "projection",
        "output loss",
        "loss of sub-layers",
        "accuracy",
        "cosine",
        f"effect of `{MIDDLE[program]}`",
    ]
    return markdown(head, lines) + f"\n\n{about(rows)} per arm and d."


def cost_by_program() -> str:
    """Every program: what is left at d = D, D/2 and D/4, and how far it can be compressed."""
    lines = []
    for program in sorted({row["program"] for row in rows_of("cost")}, key=lambda name: (_width(name), name)):
        rows = chosen("cost", program=program)
        ratios = sorted({row["ratio"] for row in rows})
        near = {goal: min((abs(ratio - goal), ratio) for ratio in ratios)[1] for goal in (1, 2, 4)}
        right = [r for r in ratios if np.median([row["accuracy"] for row in rows if row["ratio"] == r]) >= 0.99]
        like = [r for r in ratios if np.median([row["least"] for row in rows if row["ratio"] == r]) >= 0.9]
        at = {goal: [row for row in rows if row["ratio"] == ratio] for goal, ratio in near.items()}
        lines.append(
            [
                f"`{program}`",
                rows[0]["width"],
                len(rows[0]["cosines"]),
                *(cell(at[goal], "accuracy", ".0%") for goal in (1, 2, 4)),
                *(cell(at[goal], "least", ".2f") for goal in (1, 2, 4)),
                *(cell(at[goal], "used", ".0%") for goal in (1, 2, 4)),
                f"{max(right):.2g}" if right else "none",
                f"{max(like):.2g}" if like else "none",
            ]
        )
    head = [
        "program",
        "D",
        "sub-layers",
        "accuracy at D",
        "D/2",
        "D/4",
        "least cosine at D",
        "D/2",
        "D/4",
        "variables used at D",
        "D/2",
        "D/4",
        "right up to D/d",
        "faithful up to D/d",
    ]
    return markdown(head, lines) + f"\n\n{about(rows_of('cost'))} for each of the dims."


def _width(program: str) -> int:
    return int(chosen("cost", program=program)[0]["width"])


GOALS = (1, 1.15, 1.3, 1.5, 1.75, 2, 2.5, 3, 4)


def cost_by_ratio() -> str:
    """The median program at every ratio, with an interval over programs."""
    lines = []
    for goal in GOALS:
        some = at_ratio(goal)
        lines.append(
            [
                f"{goal:g}",
                cell(some, "loss", ".2g"),
                cell(some, "accuracy", ".0%"),
                cell(some, lambda row: float(row["accuracy"] >= 0.99), ".0%", share),
                cell(some, "cosine", ".2f"),
                cell(some, "least", ".2f"),
                cell(some, lambda row: float(row["least"] >= 0.9), ".0%", share),
                cell([row for row in some if np.isfinite(row["used"])], "used", ".0%", share),
            ]
        )
    head = [
        "D/d",
        "loss",
        "accuracy",
        "programs ≥ 99% right",
        "mean cosine",
        "least cosine",
        "programs with least cosine ≥ 0.9",
        "variables used",
    ]
    return (
        markdown(head, lines)
        + "\n\nMedians (of variables, means) over programs of their medians over seeds; intervals over programs."
    )


def at_ratio(goal: float) -> list[Row]:
    """For every program, the medians over seeds at the dim that is nearest to a ratio."""
    found = []
    for program in sorted({row["program"] for row in rows_of("cost")}):
        rows = chosen("cost", program=program)
        dim = max(1, round(rows[0]["width"] / goal))
        mine = [row for row in rows if row["dim"] == dim]
        names = ("loss", "accuracy", "cosine", "least", "used")
        found.append({name: float(np.median([row[name] for row in mine])) for name in names} | {"rerun": 0, "seed": 0})
    return found


def shared() -> str:
    """Overlap and decay: the products of the directions."""
    lines = []
    for part in json.loads((DATA / "shared.json").read_text()):
        for overlap, runs, penalised in zip(part["overlaps"], part["trained"], part["penalised"], strict=True):
            some = [{"xy": run[1], "yy": run[2], "rerun": 0} for run in runs]
            best = np.median(np.array(penalised), axis=0)
            lines.append(
                [
                    f"{overlap:g}",
                    f"{part['decay']:g}",
                    cell(some, "xy", ".3f"),
                    cell(some, "yy", ".3f"),
                    f"{best[1]:.3f}, {best[2]:.3f}",
                ]
            )
    return markdown(["p", "decay", "w_x·w_y", "\\|w_y\\|²", "penalised: w_x·w_y, \\|w_y\\|²"], lines)


def shared_rare() -> str:
    """Overlaps near 1, and the share of seeds at the golden ratio."""
    lines = []
    for part in json.loads((DATA / "shared_rare.json").read_text()):
        for overlap, runs in zip(part["overlaps"], part["trained"], strict=True):
            some = [{"xy": run[1], "yy": run[2], "rerun": 0} for run in runs]
            golden = cell(some, lambda row: float(abs(row["xy"] - GOLDEN) < 0.01), ".0%", share)
            apart = cell(some, lambda row: float(abs(row["xy"]) < 0.01), ".0%", share)
            far = "0" if overlap == 1 else f"{1 - overlap:.0e}"
            lines.append([far, f"{part['decay']:g}", cell(some, "xy", ".3f"), cell(some, "yy", ".3f"), apart, golden])
    return markdown(["1 − p", "decay", "w_x·w_y", "\\|w_y\\|²", "seeds at 0, 1", "seeds at 0.618, 0.382"], lines)


def shared_signs() -> str:
    """At p = 1: the products by the number of coordinates in which the signs differ."""
    lines = []
    for part in json.loads((DATA / "shared_dims.json").read_text()):
        runs = np.array(part["trained"][-1])
        for differ in sorted(set(runs[:, 3])):
            mine = [{"xy": run[1], "yy": run[2], "rerun": 0} for run in runs if run[3] == differ]
            lines.append(
                [
                    part["dim"],
                    f"{differ:g}",
                    f"{len(mine)} of {len(runs)}",
                    cell(mine, "xy", ".3f"),
                    cell(mine, "yy", ".3f"),
                ]
            )
    return markdown(["d", "coordinates with other signs", "seeds", "w_x·w_y", "\\|w_y\\|²"], lines)


def shared_in_model() -> str:
    """The same products in frac_prevs, for runs with a small loss."""
    lines = []
    every = [
        row for study in ("paper", "settings") for row in chosen(study, program="frac_prevs") if row["loss"] < 1e-5
    ]
    for name, change in (("the recipe", {}), ("no decay", {"decay": 0.0}), ("gap 40", {"gap": 40.0})):
        wanted = RECIPE | change
        rows = [row for row in every if all(row[key] == value for key, value in wanted.items())]
        for differ in sorted({row["differ"] for row in rows}):
            mine = [row for row in rows if row["differ"] == differ]
            if len(mine) >= 5:
                cosine = cell(mine, lambda row: row["xy"] / (row["xx"] * row["yy"]) ** 0.5, ".2f")
                lines.append(
                    [
                        name,
                        f"{differ:g}",
                        len(mine),
                        cosine,
                        cell(mine, "xy", ".2f"),
                        cell(mine, "yy", ".2f"),
                        cell(mine, "effect", ".2f"),
                    ]
                )
    head = ["arm", "coordinates with other signs", "runs", "cosine", "product", "\\|is_x\\|²", "effect of `is_x`"]
    return markdown(head, lines)


def fast_runs(dim: int) -> list[Row]:
    """The runs of `fast` on sort_unique, one for each seed: with its default, or, if there is none, before its rounds,
    which can only lower the loss."""
    found = json.loads((DATA / "fast.json").read_text())
    return [run | {"rerun": 0} for run in found if run["dim"] == dim and run["kinds"] in ("all", "needed")]


def fast() -> str:
    """Our optimiser below 9 dimensions, beside the recipe."""
    lines = []
    for dim in range(4, 9):
        mine, recipe = fast_runs(dim), chosen("paper", program="sort_unique", dim=dim)
        lower = sum(row["loss"] < np.median([run["loss"] for run in mine]) for row in recipe)
        lines.append(
            [
                dim,
                len(mine),
                cell(mine, "loss", ".2g"),
                f"{min(run['loss'] for run in mine):.2g}",
                cell(recipe, "loss", ".2g"),
                f"{min(row['loss'] for row in recipe):.2g}",
                f"{lower} of {len(recipe)}",
                f"{np.median([run['processor_seconds'] for run in mine]):.0f}",
            ]
        )
    head = ["d", "seeds", "`fast`: loss", "best", "recipe: loss", "best", "recipe: runs below the median of `fast`"]
    return markdown([*head, "processor seconds of `fast`"], lines)


def speed() -> str:
    """Times on a CPU: the recipe as a plain loop, `sgd`, and `fast`."""
    found = json.loads((DATA / "speed.json").read_text())
    cases = found["cases"]

    def ratio(case: Row, what: str, kind: str) -> str:
        plain = case["plain"][("wall", "processor").index(kind)] * found["recipe_steps"]
        value = plain / case[what][0][kind]
        return f"{float(f'{value:.2g}'):,.0f}"

    lines: list[list[Any]] = [
        ["(b) `sgd`: steps per second, relative to (a)", *(f"{case['sgd'] * case['plain'][0]:.0f}" for case in cases)],
        ["the loss to reach", *(f"{case['reached']:.2g}" for case in cases)],
        ["(c) `fast`: its loss when it stops there", *(f"{case['with compilation'][0]['loss']:.2g}" for case in cases)],
    ]
    for kind, name in (("wall", "time"), ("processor", "processor time")):
        for what in ("with compilation", "compiled before"):
            text = f"{name} of all {found['recipe_steps']:,} steps of (a), relative to (c), {what}"
            lines.append([text, *(ratio(case, what, kind) for case in cases)])
    for what, value, form, text in (
        (
            "other seeds, compiled before",
            "processor",
            ".2g",
            "other seeds of (c): seconds of processor time, compiled before",
        ),
        ("without a loss to reach", "loss", ".1e", "`fast` without a loss to reach, four seeds: its losses"),
    ):
        lines.append([text, *(", ".join(f"{run[value]:{form}}" for run in case[what]) for case in cases)])
    return markdown(["", *(f"{case['program']}, d = {case['dim']}" for case in cases)], lines)


def digits() -> str:
    """The same runs with more and fewer digits."""
    found = json.loads((DATA / "digits.json").read_text())
    lines = []
    for name in ("as shipped", "highest everywhere", "no precision asked for"):
        some = [{"loss": loss, "rerun": 0} for loss in found[name]]
        lines.append([name, len(some), cell(some, "loss", ".2g"), cell(some, below(STUCK), ".0%", share)])
    return markdown(["precision of products", "runs", "loss", f"runs below {STUCK:g}"], lines)


def lossless() -> str:
    """How far every program can be compressed without loss."""
    rows = json.loads((DATA / "lossless.json").read_text())
    lines = [
        [
            f"`{row['program']}`",
            row["width"],
            row["closed"],
            f"{row['width'] / row['closed']:.2f}",
            row["bound"],
            f"{row['width'] / max(1, row['bound']):.2f}",
        ]
        for row in sorted(rows, key=lambda row: row["width"] / row["closed"])
    ]
    return markdown(["program", "D", "d of the closed form", "D/d", "bound", "D/bound"], lines)


def kick() -> str:
    """One step from the faithful solution."""
    rows = json.loads((DATA / "kick.json").read_text())
    lines = [
        [
            f"`{row['program']}`",
            f"{row['gap']:g}",
            f"{np.median(row['before']):.1g}",
            *(f"{np.median(one):.1g}" for one in row["after"]),
        ]
        for row in rows
    ]
    return markdown(["program", "gap", "before", *(f"after, rate {rate:g}" for rate in rows[0]["rates"])], lines)


def target_pos_table() -> str:
    """What the sub-layer of `target_pos` writes, at the ends of both studies."""
    lines = []
    arms = [(f"recipe, d = {dim}", chosen("paper", program="sort_unique", dim=dim)) for dim in (8, 12, 20)]
    for gap, start, rate, decay in (
        (40.0, "1/√D", 1e-3, 0.1),
        (256.0, "faithful", 1e-3, 0.1),
        (40.0, "faithful", 1e-3, 0.1),
        (40.0, "faithful", 1e-4, 0.1),
    ):
        some = chosen("faithful", program="sort_unique", gap=gap, start=start, rate=rate, decay=decay)
        arms.append((f"d = 15, start {start}, gap {gap:g}, rate {rate:g}", some))
    for name, rows in arms:
        values = (("token_share", ".3f"), ("from_position", ".3f"), ("from_first", ".3f"))
        lines.append([name, len(rows), *(cell(rows, value, form) for value, form in values)])
    head = [
        "runs",
        "number",
        "variance explained by the token",
        "distance from the position",
        "distance from P(position 0 given the token)",
    ]
    return markdown(head, lines)


TABLES: dict[str, Callable[[], str]] = {
    **{f"paper {name}": partial(paper, name) for name in ("frac_prevs", "sort_unique")},
    **{f"settings {name}": partial(settings, name) for name in ("frac_prevs", "sort_unique")},
    **{f"variants {name}": partial(variants, name) for name in ("frac_prevs", "sort_unique")},
    **{f"sharing {name}": partial(sharing, name) for name in ("frac_prevs", "sort_unique")},
    **{
        f"faithful {name}": partial(faithful, name)
        for name in ("sort_unique", "frac_prevs", "hist", "reverse", "has_prev")
    },
    "cost by program": cost_by_program,
    "cost by ratio": cost_by_ratio,
    "target_pos": target_pos_table,
    "digits": digits,
    "lossless": lossless,
    "kick": kick,
    "shared": shared,
    "shared rare": shared_rare,
    "shared signs": shared_signs,
    "shared in frac_prevs": shared_in_model,
    "fast": fast,
    "speed": speed,
}


def filled(page: str) -> str:
    """A page with its tables."""

    def table(found: re.Match[str]) -> str:
        return f"<!-- table {found[1]} -->\n\n{TABLES[found[1]]()}\n\n<!-- end -->"

    return re.sub(r"<!-- table (.*?) -->.*?<!-- end -->", table, page, flags=re.DOTALL)


def fill() -> None:
    """Write the tables into all pages."""
    for page in PAGES:
        if page.exists():
            page.write_text(filled(page.read_text()))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    given = parser.parse_args()
    if not given.names:
        fill()
    for name in given.names:
        print(f"{TABLES[name]()}\n")


if __name__ == "__main__":
    main()
