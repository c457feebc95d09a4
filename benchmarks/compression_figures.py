"""The figures of the pages on compression, from docs/compression/data (`benchmarks/compression_data.py`).

    python benchmarks/compression_figures.py              draw all figures into docs/compression
    python benchmarks/compression_figures.py NAME ...     draw some

Needs numpy, jax, pyarrow and matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).resolve().parent))

from compression_data import DATA, GOLDEN, MIDDLE, PLACE, Row, chosen, interval, rows_of
from compression_tables import arms_of

if TYPE_CHECKING:
    from tracr.compress.model import CompressedModel

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999")


def _figure(width: float, height: float, rows: int, columns: int, **more: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def dims(program: str) -> Figure:
    """Loss, accuracy, cosine and causal effect against d: every run a dot, the median with its interval."""
    figure, panels = _figure(11, 3, 1, 4)
    rows = chosen("paper", program=program)
    every = sorted({row["dim"] for row in rows})
    names = {
        "loss": "loss",
        "accuracy": "accuracy",
        "cosine": "mean cosine of sub-layers",
        "effect": f"causal effect of {MIDDLE[program]}",
    }
    rng = np.random.default_rng(0)
    for axes, (value, title) in zip(panels[0], names.items(), strict=True):
        places = np.array([row["dim"] for row in rows]) + rng.uniform(-0.2, 0.2, size=len(rows))
        axes.scatter(places, [row[value] for row in rows], s=4, color=COLOURS[0], alpha=0.25, linewidths=0)
        found = np.array([interval([row for row in rows if row["dim"] == dim], value) for dim in every])
        axes.plot(every, found[:, 0], color=COLOURS[1], linewidth=1.4)
        axes.fill_between(every, found[:, 1], found[:, 2], color=COLOURS[1], alpha=0.3, linewidth=0)
        axes.set(xlabel="d", title=title, yscale="log" if value == "loss" else "linear")
        if value == "effect":
            axes.set_ylim(-0.3, 1.3)
    figure.suptitle(f"{program}: the paper's recipe (dots: runs; line: median, with its 95 % interval)", fontsize=10)
    return figure


def training() -> Figure:
    """The loss during training of frac_prevs."""
    from tracr.compress.figures import training_curves

    rows = chosen("paper", program="frac_prevs")
    curves = {}
    for dim in (2, 4, 6, 8, 10, 14):
        runs = np.array([row["curve"] for row in rows if row["dim"] == dim])
        steps = np.linspace(0, rows[0]["steps"], runs.shape[1] + 1)[1:]
        curves[f"d = {dim}"] = steps.tolist(), runs.T
    return training_curves(curves, title="frac_prevs: median and quartiles")


def best(program: str) -> CompressedModel:
    """The run with the lowest loss, of those that the figures show."""
    from tracr.compress.compressing import measured
    from tracr.compress.model import Training
    from tracr.compress.paper import study
    from tracr.compress.projection import Projection, sites_of
    from tracr.compress.task import task_of

    model, inputs = study(program)
    task = task_of(model, inputs)
    W = np.array(json.loads((DATA / "shown.json").read_text())[program]["W"])
    return measured(model, task, Projection(W[None], sites_of(task.network, "one")), Training("sgd", 0))


def heatmaps() -> Figure:
    """W Wᵀ of frac_prevs at d = 8: the best run, and PCA."""
    import tracr
    from tracr.compress.figures import gram_heatmaps
    from tracr.compress.paper import study

    model, inputs = study("frac_prevs")
    pca = tracr.compress(model, 8, "pca", inputs=inputs)
    return gram_heatmaps({"the recipe's best run, d = 8": best("frac_prevs"), "PCA, d = 8 (a tie is cut)": pca})


def layers() -> Figure:
    """What the sub-layers of sort_unique write, at d = 12."""
    from tracr.compress.figures import layer_output_maps
    from tracr.compress.paper import study

    return layer_output_maps(best("sort_unique"), study("sort_unique")[1])


def optimiser() -> Figure:
    """The least cosine of sub-layers, for every program, start, learning rate and decay."""
    programs = list(dict.fromkeys(row["program"] for row in rows_of("faithful")))
    figure, panels = _figure(11, 2.1 * len(programs), len(programs), 2, sharex=True, sharey=True)
    arms = sorted(
        {(row["start"], row["rate"], row["decay"]) for row in rows_of("faithful")},
        key=lambda arm: (("faithful", "1/√D", "1.0").index(arm[0]), -arm[1], -arm[2]),
    )
    rng = np.random.default_rng(0)
    for line, program in zip(panels, programs, strict=True):
        for axes, gap in zip(line, (256.0, 40.0), strict=True):
            for place, (start, rate, decay) in enumerate(arms):
                some = chosen("faithful", program=program, gap=gap, start=start, rate=rate, decay=decay)
                if not some:
                    continue
                colour = COLOURS[("faithful", "1/√D", "1.0").index(start)]
                noise = rng.uniform(-0.25, 0.25, size=len(some))
                axes.scatter(place + noise, [row["least"] for row in some], s=6, color=colour, alpha=0.5, linewidths=0)
                axes.plot([place - 0.3, place + 0.3], [np.median([row["least"] for row in some])] * 2, color="black")
            there = chosen("faithful", program=program, gap=gap)
            axes.set_title(f"{program}, gap {gap:g}" + ("" if there else ": not run"), fontsize=9)
            axes.set_ylim(-0.65, 1.05)
            labels = [f"{start.replace('1.0', '1')}, {rate:g}, {decay:g}" for start, rate, decay in arms]
            axes.set_xticks(range(len(arms)), labels, rotation=90, fontsize=7)
        line[0].set_ylabel("least cosine", fontsize=8)
    figure.suptitle("Where AdamW ends: start, learning rate, decay (dots: seeds; lines: medians)", fontsize=10)
    return figure


def shared() -> Figure:
    """The product of two directions against the overlap of their variables, and against the signs of coordinates."""
    figure, panels = _figure(11, 3.4, 1, 3)
    wide, near, signs = panels[0]
    for part, colour in zip(json.loads((DATA / "shared.json").read_text()), COLOURS, strict=False):
        far = [1 - overlap for overlap in part["overlaps"][:-1]]
        middle = np.median(np.array(part["trained"])[:-1, :, 1], axis=1)
        wide.plot(far, middle, color=colour, marker="o", ms=3, lw=1, label=f"AdamW, decay {part['decay']:g}")
        if part["decay"]:
            penalised = np.median(np.array(part["penalised"])[:-1, :, 1], axis=1)
            wide.plot(far, penalised, color=colour, ls=":", lw=1, label=f"L2 penalty {part['decay']:g}")
    wide.set(title="overlaps up to 0.999", ylabel="w_x·w_y")
    for part, colour in zip(json.loads((DATA / "shared_rare.json").read_text()), COLOURS[1:], strict=False):
        far = [1 - overlap for overlap in part["overlaps"][:-1]]
        low, middle, high = np.quantile(np.array(part["trained"])[:-1, :, 1], (0.25, 0.5, 0.75), axis=1)
        bars = np.array([middle - low, high - middle])
        near.errorbar(far, middle, bars, color=colour, marker="o", ms=3, lw=1, label=f"AdamW, decay {part['decay']:g}")
        near.axvline(part["decay"] * GOLDEN * 0.1 / 256, color=colour, ls=":", lw=0.8)
    near.set(title="overlaps near 1 (dotted: the estimate)")
    for axes in (wide, near):
        axes.set(xscale="log", xlabel="1 − p", ylim=(-0.05, 0.7))
        axes.invert_xaxis()
        axes.axhline(GOLDEN, color="black", lw=0.8, ls="--")
        axes.legend(fontsize=6, frameon=False)
    for part, colour in zip(json.loads((DATA / "shared_dims.json").read_text()), COLOURS, strict=False):
        runs = np.array(part["trained"][-1])
        signs.scatter(
            runs[:, 3] / part["dim"],
            runs[:, 1],
            color=colour,
            s=14,
            alpha=0.7,
            linewidths=0,
            label=f"d = {part['dim']}",
        )
    signs.axhline(GOLDEN, color="black", lw=0.8, ls="--")
    signs.set(title="p = 1, decay 0.1: every seed", xlabel="share of coordinates with other signs", ylim=(-0.05, 0.7))
    signs.legend(fontsize=6, frameon=False)
    return figure


def cost() -> Figure:
    """Loss, accuracy, cosines and causal effects of 20 programs against D/d."""
    figure, panels = _figure(13, 3.4, 1, 4)
    programs = sorted({row["program"] for row in rows_of("cost")})
    titles = {
        "loss": "loss",
        "accuracy": "accuracy",
        "least": "least cosine of sub-layers",
        "used": "variables used",
    }
    for axes, (value, title) in zip(panels[0], titles.items(), strict=True):
        for number, program in enumerate(programs):
            rows = chosen("cost", program=program)
            ratios = sorted({row["ratio"] for row in rows})
            middle = [np.median([row[value] for row in rows if row["ratio"] == ratio]) for ratio in ratios]
            style = "-" if number < 10 else "--"  # colours repeat after ten
            axes.plot(ratios, middle, style, lw=0.9, alpha=0.7, marker="o", ms=2, label=program)
        axes.set(xlabel="D/d", title=title, yscale="log" if value == "loss" else "linear")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=7, frameon=False)
    figure.suptitle(f"{len(programs)} programs, one line each: medians over seeds", fontsize=10)
    return figure


def panels(groups: dict[str, list[tuple[str, list[Row]]]], title: str) -> Figure:
    """Loss, accuracy, cosine and causal effect of arms: a line of panels per group, every run a dot, medians black."""
    figure, lines = _figure(11, 0.6 + sum(0.5 + 0.24 * len(arms) for arms in groups.values()), len(groups), 4)
    rng = np.random.default_rng(0)
    for line, (group, arms) in zip(lines, groups.items(), strict=True):
        names = {"loss": "loss", "accuracy": "accuracy", "cosine": "mean cosine", "effect": "causal effect"}
        for axes, (value, head) in zip(line, names.items(), strict=True):
            for place, (_, rows) in enumerate(arms):
                heights = -place + rng.uniform(-0.25, 0.25, size=len(rows))
                found = [max(row[value], 1e-9) if value == "loss" else row[value] for row in rows]
                axes.scatter(found, heights, s=4, color=COLOURS[place % 7], alpha=0.4, linewidths=0)
                axes.plot([np.median(found)] * 2, [-place - 0.35, -place + 0.35], color="black", linewidth=1.2)
            shown = [name if axes is line[0] else "" for name, _ in arms]
            axes.set_yticks([-place for place in range(len(arms))], shown, fontsize=7)
            axes.tick_params(axis="x", which="both", labelsize=7)
            axes.set_xscale("log" if value == "loss" else "linear")
            axes.set_title(f"{group}: {head}" if axes is line[0] else head, fontsize=8)
            if value == "effect":
                axes.set_xlim(-0.5, 2)
    figure.suptitle(title, fontsize=10)
    return figure


def by_arms(study: str) -> Figure:
    """The runs of a study whose arms the pages compare, at each d of both programs."""
    groups = {}
    for program in ("frac_prevs", "sort_unique"):
        for dim in sorted({row["dim"] for row in chosen(study, program=program)}):
            groups[f"{program}, d = {dim}"] = arms_of(study, program, dim)
    titles = {
        "variants": "Other weights of the loss: output, sub-layers (the loss shown is without weights)",
        "sharing": "Other projections, and trained weights",
        "settings": "Gap, start and weight decay",
    }
    return panels(groups, f"{titles[study]} (dots: runs; lines: medians)")


FIGURES: dict[str, Callable[[], Figure]] = {
    "frac_prevs-dims": lambda: dims("frac_prevs"),
    "sort_unique-dims": lambda: dims("sort_unique"),
    "frac_prevs-training": training,
    "frac_prevs-heatmaps": heatmaps,
    "sort_unique-layers": layers,
    "optimiser": optimiser,
    "shared-information": shared,
    "cost": cost,
    **{name: partial(by_arms, name) for name in ("variants", "sharing", "settings")},
}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FIGURES))
    for name in parser.parse_args().names or FIGURES:
        FIGURES[name]().savefig(PLACE / f"{name}.png", dpi=100)
        print(f"{name}.png")


if __name__ == "__main__":
    main()
