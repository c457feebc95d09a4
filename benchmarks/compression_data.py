"""The data of the compression studies: one row per run in docs/compression/data, and numbers computed from rows.

    python benchmarks/compression_data.py OUT     put the measured runs of OUT into docs/compression/data

OUT is the folder of `benchmarks/compression_studies.py`. Runs that are there already stay, unless OUT has the same run.
Needs numpy and pyarrow, and jax for sort_unique.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent.parent / "docs"
PLACE = DOCS / "compression"
DATA = PLACE / "data"
OF_PART = ("program", "gap", "sharing", "train_weights", "steps", "width")
OF_RUN = ("dim", "seed", "rerun", "rate", "decay", "output_weight", "layer_weight")
RUN = (*OF_PART[:4], *OF_RUN, "start")
STUDIES = ("paper", "settings", "faithful", "variants", "sharing", "cost")
MIDDLE = {"frac_prevs": "is_x", "sort_unique": "target_pos", "has_prev": "selector_width"}
"""The variable between input and output of the programs whose causal effect is told."""
DIMS = ["dim2", "dim4", "dim8", "dim16", "dim32"]
GOLDEN = (5**0.5 - 1) / 2
SHOWN = {"frac_prevs": 8, "sort_unique": 12}
"""The dims of the best runs whose matrices are kept."""
STUCK = 1e-4  # a run of frac_prevs that ends above this loss is called stuck
DRAWS = 1000
USED = 0.8, 1.25  # a variable with an effect between these is used as the program uses it

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
            about = {name: part[name] for name in OF_PART}
            more = _looked_at(path.with_suffix(".npz"), part)
            rows += [
                _flat(about, run, keep_curve=study in ("paper", "settings")) | one
                for run, one in zip(part["runs"], more, strict=True)
            ]
        if rows:
            new = {_key(row) for row in rows}
            rows = [row for row in _stored(study) if _key(row) not in new] + rows
            names = dict.fromkeys(name for row in rows for name in row)
            table = pyarrow.Table.from_pylist([dict.fromkeys(names) | row for row in rows])
            pyarrow.parquet.write_table(table, DATA / f"{study}.parquet", compression="zstd", compression_level=19)
            print(f"{study}: {len(rows)} runs")
    if all((out / f"paper-{program}.npz").exists() for program in SHOWN):
        best = {program: _best(out / f"paper-{program}.npz", dim) for program, dim in SHOWN.items()}
        (DATA / "shown.json").write_text(json.dumps(best) + "\n")
    for name in ("sweep", "speed", "digits", "lossless", "kick"):
        if (out / f"{name}.json").exists():
            (DATA / f"{name}.json").write_text((out / f"{name}.json").read_text())
    fast = [json.loads(path.read_text()) for path in sorted((out / "fast").glob("fast-*.json"))]
    if fast:
        _fast(fast)
    for name, places in {"shared": ["shared"], "shared_rare": ["rare"], "shared_dims": DIMS}.items():
        found = [
            json.loads(path.read_text()) for place in places for path in sorted((out / place).glob("shared-*.json"))
        ]
        if found:
            (DATA / f"{name}.json").write_text(json.dumps(sorted(found, key=lambda one: one["decay"])) + "\n")


def _fast(runs: list[Row]) -> None:
    """Add runs of `fast`: `kinds` is "all" for its default, "rounds32" for 32 rounds. Older ones with starts that it no
    longer has ("others") go, and those that end before the rounds ("needed"), if there are whole ones."""
    path = DATA / "fast.json"
    whole = {(run["dim"], run["seed"]) for run in runs if run["kinds"] == "all"}
    new = {(run["dim"], run["seed"], run["kinds"]) for run in runs}
    for old in json.loads(path.read_text()) if path.exists() else []:
        before = old["kinds"] == "needed" and (old["dim"], old["seed"]) in whole
        if old["kinds"] != "others" and not before and (old["dim"], old["seed"], old["kinds"]) not in new:
            runs.append(old)
    runs.sort(key=lambda run: (run["dim"], run["seed"], run["kinds"]))
    path.write_text(json.dumps(runs) + "\n")


def _key(row: Row) -> tuple[Any, ...]:
    """What tells the runs of a study apart."""
    return tuple(row[name] for name in RUN)


def _stored(study: str) -> list[Row]:
    """The rows of a study that were collected before."""
    import pyarrow.parquet

    path = DATA / f"{study}.parquet"
    return pyarrow.parquet.read_table(path).to_pylist() if path.exists() else []


def _looked_at(path: Path, part: Row) -> list[Row]:
    """What the pages tell of single programs. frac_prevs: the products of the directions of `tokens:x` and `is_x`, and
    the number of coordinates in which their signs differ. sort_unique: what `target_pos` says."""
    if part["program"] not in ("frac_prevs", "sort_unique"):
        return [{}] * len(part["runs"])
    with np.load(path) as arrays:
        W = arrays["W"].astype(float)
    if part["program"] == "sort_unique" and part["sharing"] == "one" and not part["train_weights"]:
        return target_pos(W, part["gap"])
    if part["program"] == "sort_unique":
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
        return {**runs[number], "W": arrays["W"][number, 0, :, :dim].round(6).astype(float).tolist()}


def _flat(about: Row, run: Row, keep_curve: bool) -> Row:
    """A row of numbers, strings and lists."""
    row = about | {name: run[name] for name in OF_RUN}
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
    return tuple(_more(row) for row in _stored(study))


def _more(row: Row) -> Row:
    slopes = dict(zip(row["slopes of"], row["slopes"], strict=True))
    variable = MIDDLE.get(row["program"])
    output = next(reversed(slopes), None)  # the output is the last variable that is written
    effect = slopes[variable] / slopes[output] if variable in slopes and output is not None else float("nan")
    least = min(row["cosines"], default=float("nan"))
    used = [USED[0] <= slope / slopes[output] <= USED[1] for name, slope in slopes.items() if name != output]
    return row | {
        "loss": row["output_loss"] + row["layer_loss"],
        "effect": effect,
        "least": least,
        "used": float(np.mean(used)) if used else float("nan"),
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


def about(rows: Sequence[Row]) -> str:
    """How many runs of how many steps a table has."""
    steps = sorted({row["steps"] for row in rows})
    reruns = len({row["rerun"] for row in rows})
    seeds = len({row["seed"] for row in rows})
    text = " and ".join(f"{number:,}" for number in steps)
    return f"{len(rows):,} runs of {text} steps: {seeds} seeds" + (f" in each of {reruns} reruns" if reruns > 1 else "")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    collect(parser.parse_args().out)


if __name__ == "__main__":
    main()
