"""The tables of the pages on compression, from the data of the studies.

    python benchmarks/compression_tables.py collect OUT   put the measured runs of OUT into docs/compression/data
    python benchmarks/compression_tables.py fill          write the tables into the pages, between their marks
    python benchmarks/compression_tables.py show          print all tables

A page has `<!-- table NAME -->` and `<!-- end -->`; what is between them is replaced by `TABLES[NAME]`. OUT is
the folder of `benchmarks/compression_studies.py`. Needs numpy and pyarrow.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent.parent / "docs"
PLACE = DOCS / "compression"
DATA = PLACE / "data"
PAGES = (DOCS / "compression.md", *(PLACE / f"{name}.md" for name in ("optimiser", "shared-information", "cost")))
STUDIES = ("paper", "settings", "faithful", "variants", "sharing", "cost")
MIDDLE = {"frac_prevs": "is_x", "sort_unique": "target_pos", "has_prev": "selector_width"}
"""The variable between input and output of the programs whose causal effect is told."""
DIMS = ["dim2", "dim4", "dim8", "dim16", "dim32"]
GOLDEN = (5**0.5 - 1) / 2
SHOWN = {"frac_prevs": 8, "sort_unique": 12}
"""The dims of the best runs whose matrices are kept."""
STUCK = 1e-4  # a run of frac_prevs that ends above this loss is called stuck
DRAWS = 1000

Row = dict[str, Any]


# Data


def collect(out: Path) -> None:
    """Write a Parquet file for every study, and the small data of the others as JSON."""
    import pyarrow
    import pyarrow.parquet

    DATA.mkdir(parents=True, exist_ok=True)
    for study in STUDIES:
        rows = []
        for path in sorted(out.glob(f"{study}-*.json")):
            part = json.loads(path.read_text())
            about = {name: part[name] for name in ("program", "gap", "sharing", "train_weights", "steps", "width")}
            more = _looked_at(path.with_suffix(".npz"), part)
            rows += [
                _flat(about, run, keep_curve=study == "paper") | one
                for run, one in zip(part["runs"], more, strict=True)
            ]
        if rows:
            names = dict.fromkeys(name for row in rows for name in row)
            table = pyarrow.Table.from_pylist([dict.fromkeys(names) | row for row in rows])
            pyarrow.parquet.write_table(table, DATA / f"{study}.parquet", compression="zstd", compression_level=19)
            print(f"{study}: {len(rows)} runs")
    best = {program: _best(out / f"paper-{program}.npz", dim) for program, dim in SHOWN.items()}
    (DATA / "shown.json").write_text(json.dumps(best) + "\n")
    for name in ("sweep", "digits", "lossless", "kick"):
        if (out / f"{name}.json").exists():
            (DATA / f"{name}.json").write_text((out / f"{name}.json").read_text())
    fast = [json.loads(path.read_text()) for path in sorted((out / "fast").glob("fast-*.json"))]
    (DATA / "fast.json").write_text(json.dumps(fast) + "\n")
    for name, places in {"shared": ["shared"], "shared_rare": ["rare"], "shared_dims": DIMS}.items():
        found = [
            json.loads(path.read_text()) for place in places for path in sorted((out / place).glob("shared-*.json"))
        ]
        if found:
            (DATA / f"{name}.json").write_text(json.dumps(sorted(found, key=lambda one: one["decay"])) + "\n")


def _looked_at(path: Path, part: Row) -> list[Row]:
    """What the pages tell of single programs. frac_prevs: the products of the directions of `tokens:x` and `is_x`, and
    the number of coordinates in which their signs differ. sort_unique: what `target_pos` says."""
    with np.load(path) as arrays:
        W = arrays["W"].astype(float)
    if part["program"] == "sort_unique" and part["sharing"] == "one" and not part["train_weights"]:
        return target_pos(W, part["gap"])
    if part["program"] != "frac_prevs":
        return [{}] * len(W)
    x, y = (W[:, 0, part["labels"].index(label)] for label in ("tokens:x", "is_x"))
    products = {"xx": (x * x).sum(axis=1), "xy": (x * y).sum(axis=1), "yy": (y * y).sum(axis=1)}
    products["differ"] = (x * y < 0).sum(axis=1)
    return [{name: round(float(values[n]), 5) for name, values in products.items()} for n in range(len(W))]


def target_pos(W: Any, gap: float) -> list[Row]:
    """For projections of sort_unique: the share of the variance of what is written for `target_pos` that the token
    explains, and the mean squared distance from the position itself and from the probability, given the token, that
    it is position 0 (written as `target_pos:0`, the rest 0)."""
    import jax

    from tracr.compress.objective import Objective
    from tracr.compress.paper import study
    from tracr.compress.projection import sites_of
    from tracr.compress.task import task_of

    task = task_of(*study("sort_unique", gap))
    objective = Objective(task, sites_of(task.network, "one"), dtype=np.float64)
    with jax.enable_x64(True):
        written = np.asarray(jax.jit(jax.vmap(lambda one: objective.forward({"W": one})[0][1]))(W))[:, :, 1:]
    wanted, tokens = task.targets[1][:, 1:], task.ids[:, 1:]
    given = np.zeros_like(wanted)
    mean = np.zeros_like(written)
    for token in np.unique(tokens):
        given[tokens == token, 0] = wanted[tokens == token, 0].mean()
        mean[:, tokens == token] = written[:, tokens == token].mean(axis=1, keepdims=True)
    spread = ((written - written.mean(axis=(1, 2), keepdims=True)) ** 2).sum(axis=(1, 2, 3))
    inside = ((written - mean) ** 2).sum(axis=(1, 2, 3))
    far, near = (((written - other) ** 2).sum(axis=-1).mean(axis=(1, 2)) for other in (wanted, given))
    share = 1 - inside / np.maximum(spread, 1e-12)
    return [
        {"token_share": round(float(a), 4), "from_position": round(float(b), 5), "from_first": round(float(c), 5)}
        for a, b, c in zip(share, far, near, strict=True)
    ]


def _best(path: Path, dim: int) -> Row:
    """The matrix of the run with the lowest loss."""
    with np.load(path) as arrays:
        runs, losses = json.loads(str(arrays["about"]))["runs"], arrays["end"].sum(axis=1)
        number = min((n for n, run in enumerate(runs) if run["dim"] == dim), key=lambda n: losses[n])
        return runs[number] | {"W": arrays["W"][number, 0, :, :dim].round(6).astype(float).tolist()}


def _flat(about: Row, run: Row, keep_curve: bool) -> Row:
    """A row of numbers, strings and lists."""
    row = about | {
        name: run[name] for name in ("dim", "seed", "rerun", "rate", "decay", "output_weight", "layer_weight")
    }
    row["start"] = "1/√D" if run["start"] is None else str(run["start"])
    row |= {name: float(run[name]) for name in ("output_loss", "layer_loss", "accuracy", "cosine")}
    row["half_loss"] = float(sum(run["half"]))
    for name in ("cosines", "slopes"):
        row[f"{name} of"] = list(run[name])
        row[name] = [float(np.float32(value)) for value in run[name].values()]
    row["read_back"] = [round(float(value), 4) for value in run["read_back"]]
    row["curve"] = [float(f"{value:.3g}") for value in run["curve"]] if keep_curve else []
    return row


@cache
def rows_of(study: str) -> tuple[Row, ...]:
    """The runs of a study, with what is computed from their numbers."""
    import pyarrow.parquet

    path = DATA / f"{study}.parquet"
    if not path.exists():
        return ()
    return tuple(_more(row) for row in pyarrow.parquet.read_table(path).to_pylist())


def _more(row: Row) -> Row:
    slopes = dict(zip(row["slopes of"], row["slopes"], strict=True))
    variable = MIDDLE.get(row["program"])
    output = next(reversed(slopes), None)  # the output is the last variable that is written
    effect = slopes[variable] / slopes[output] if variable in slopes and output is not None else float("nan")
    least = min(row["cosines"], default=float("nan"))
    return row | {
        "loss": row["output_loss"] + row["layer_loss"],
        "effect": effect,
        "least": least,
        "ratio": row["width"] / row["dim"],
    }


def chosen(study: str, **wanted: Any) -> list[Row]:
    """The runs of a study with these values."""
    return [row for row in rows_of(study) if all(row[name] == value for name, value in wanted.items())]


# Numbers


def interval(
    rows: Sequence[Row], value: str | Callable[[Row], float], of: Callable[..., Any] = np.median
) -> tuple[float, float, float]:
    """A statistic over all runs and its bootstrap interval (95 %): reruns are drawn, and runs within each."""
    get: Any = value if callable(value) else (lambda row: row[value])
    groups = [np.array([get(row) for row in rows if row["rerun"] == n]) for n in sorted({row["rerun"] for row in rows})]
    rng = np.random.default_rng(0)
    if len({len(group) for group in groups}) == 1:
        table = np.stack(groups)
        which = rng.integers(len(table), size=(DRAWS, len(table), 1))
        runs = rng.integers(table.shape[1], size=(DRAWS, *table.shape))
        found = of(table[which, runs].reshape(DRAWS, -1), axis=1)
    else:
        drawn = ([groups[n] for n in rng.integers(len(groups), size=len(groups))] for _ in range(DRAWS))
        found = [of(np.concatenate([rng.choice(group, len(group)) for group in some])) for some in drawn]
    low, high = np.quantile(found, (0.025, 0.975))
    return float(of(np.concatenate(groups))), float(low), float(high)


def shown(found: tuple[float, float, float], form: str) -> str:
    """A number with its interval."""
    if not np.isfinite(found[0]):
        return "–"
    middle, low, high = (f"{value:{form}}" for value in found)
    return middle if low == middle == high else f"{middle} [{low}, {high}]"


def cell(rows: Sequence[Row], value: Any, form: str, of: Callable[..., Any] = np.median) -> str:
    """A statistic with its interval, as text."""
    return shown(interval(rows, value, of), form) if rows else "–"


def per_rerun(rows: Sequence[Row], value: str, form: str) -> str:
    """The median of each rerun."""
    reruns = sorted({row["rerun"] for row in rows})
    return ", ".join(f"{np.median([row[value] for row in rows if row['rerun'] == n]):{form}}" for n in reruns)


def share(values: Any, axis: int | None = None) -> Any:
    """The mean, for values that are 0 or 1."""
    return np.mean(values, axis=axis)


def below(limit: float) -> Callable[[Row], float]:
    """Whether the loss is below a limit."""
    return lambda row: float(row["loss"] < limit)


def markdown(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def about(rows: Sequence[Row]) -> str:
    """How many runs of how many steps a table has."""
    steps = sorted({row["steps"] for row in rows})
    reruns = len({row["rerun"] for row in rows})
    seeds = len({row["seed"] for row in rows})
    text = " and ".join(f"{number:,}" for number in steps)
    return f"{len(rows):,} runs of {text} steps: {seeds} seeds" + (f" in each of {reruns} reruns" if reruns > 1 else "")


# Tables


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


ARMS = (
    ("the recipe", {}),
    ("start 1", {"start": "1.0"}),
    ("no decay", {"decay": 0.0}),
    ("start 1, no decay", {"start": "1.0", "decay": 0.0}),
    ("gap 100", {"gap": 100.0}),
    ("gap 40", {"gap": 40.0}),
    ("gap 40, start 1", {"gap": 40.0, "start": "1.0"}),
)
RECIPE = {"start": "1/√D", "decay": 0.1, "gap": 256.0}


def settings(program: str) -> str:
    """One setting changed at a time."""
    lines = []
    rows = chosen("settings", program=program)
    for dim in sorted({row["dim"] for row in rows}):
        for name, change in ARMS:
            some = chosen("settings", program=program, dim=dim, **(RECIPE | change))
            if some:
                lines.append(
                    [
                        dim,
                        name,
                        cell(some, "loss", ".2g"),
                        per_rerun(some, "loss", ".1e"),
                        cell(some, below(STUCK if program == "frac_prevs" else 0.1), ".0%", share),
                        cell(some, "accuracy", ".1%"),
                        cell(some, "cosine", ".3f"),
                        cell(some, "effect", ".2f"),
                        f"{np.median([row['half_loss'] for row in some]):.2g}",
                    ]
                )
    limit = STUCK if program == "frac_prevs" else 0.1
    head = [
        "d",
        "arm",
        "loss",
        "of each rerun",
        f"runs below {limit:g}",
        "accuracy",
        "cosine",
        f"effect of `{MIDDLE[program]}`",
        "loss at half time",
    ]
    return markdown(head, lines) + f"\n\n{about(rows)} per arm and d."


def arms() -> str:
    """Gap, start and decay with equal steps, from the runs of `faithful` at the recipe's learning rate."""
    lines = []
    for program, gap in itertools.product(("frac_prevs", "sort_unique"), (256.0, 40.0)):
        for start, decay in itertools.product(("1/√D", "1.0"), (0.1, 0.0)):
            some = chosen("faithful", program=program, gap=gap, start=start, rate=1e-3, decay=decay)
            few = cell(some, below(STUCK), ".0%", share) if program == "frac_prevs" else "–"
            lines.append(
                [
                    f"`{program}`",
                    f"{gap:g}",
                    start.replace("1.0", "1"),
                    f"{decay:g}",
                    cell(some, "loss", ".2g"),
                    few,
                    cell(some, "accuracy", ".1%"),
                    cell(some, "effect", ".2f"),
                ]
            )
    head = [
        "program",
        "gap",
        "start",
        "decay",
        "loss",
        f"runs below {STUCK:g}",
        "accuracy",
        "effect of `is_x`, `target_pos`",
    ]
    return markdown(head, lines)


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
        for weights in sorted({(row["output_weight"], row["layer_weight"]) for row in rows}, reverse=True):
            some = chosen("variants", program=program, dim=dim, output_weight=weights[0], layer_weight=weights[1])
            lines.append([dim, f"{weights[0]:g}", f"{weights[1]:g}", *_measures(some)])
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
        arms = [
            ("one W", chosen("variants", program=program, dim=dim, output_weight=1.0, layer_weight=1.0)),
            ("one W per layer", chosen("sharing", program=program, dim=dim, sharing="layer")),
            ("one to read, one to write", chosen("sharing", program=program, dim=dim, sharing="read-write")),
            ("one W, weights trained", chosen("sharing", program=program, dim=dim, train_weights=True)),
        ]
        lines += [[dim, name, *_measures(some)] for name, some in arms if some]
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
        near = {goal: min(ratios, key=lambda ratio, goal=goal: abs(ratio - goal)) for goal in (1, 2, 4)}
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
        some = _at_ratio(goal)
        lines.append(
            [
                f"{goal:g}",
                cell(some, "loss", ".2g"),
                cell(some, "accuracy", ".0%"),
                cell(some, lambda row: float(row["accuracy"] >= 0.99), ".0%", share),
                cell(some, "cosine", ".2f"),
                cell(some, "least", ".2f"),
                cell(some, lambda row: float(row["least"] >= 0.9), ".0%", share),
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
    ]
    return markdown(head, lines) + "\n\nMedians over programs of their medians over seeds; intervals over programs."


def _at_ratio(goal: float) -> list[Row]:
    """For every program, the medians over seeds at the dim that is nearest to a ratio."""
    found = []
    for program in sorted({row["program"] for row in rows_of("cost")}):
        rows = chosen("cost", program=program)
        dim = max(1, round(rows[0]["width"] / goal))
        mine = [row for row in rows if row["dim"] == dim]
        names = ("loss", "accuracy", "cosine", "least", "effect")
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


def fast() -> str:
    """Our optimiser below 9 dimensions, beside the recipe."""
    found = json.loads((DATA / "fast.json").read_text())
    lines = []
    for dim in sorted({run["dim"] for run in found}):
        mine = [run | {"rerun": 0} for run in found if run["dim"] == dim]
        recipe = chosen("paper", program="sort_unique", dim=dim)
        lines.append(
            [
                dim,
                len(mine),
                cell(mine, "loss", ".2g"),
                f"{min(run['loss'] for run in mine):.2g}",
                cell(recipe, "loss", ".2g"),
                f"{min(row['loss'] for row in recipe):.2g}" if recipe else "–",
                f"{np.median([run['seconds'] for run in mine]):.0f}",
            ]
        )
    return markdown(["d", "seeds", "`fast`: loss", "best", "recipe: loss", "best of 96", "seconds of `fast`"], lines)


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
    "arms": arms,
    "digits": digits,
    "lossless": lossless,
    "kick": kick,
    "shared": shared,
    "shared rare": shared_rare,
    "shared signs": shared_signs,
    "shared in frac_prevs": shared_in_model,
    "fast": fast,
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
    parser.add_argument("command", choices=("collect", "fill", "show"))
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--table", nargs="*")
    given = parser.parse_args()
    if given.command == "collect":
        collect(given.out)
    elif given.command == "fill":
        fill()
    else:
        for name in given.table or TABLES:
            print(f"\n{name}\n\n{TABLES[name]()}")


if __name__ == "__main__":
    main()
