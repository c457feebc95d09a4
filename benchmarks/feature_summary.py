"""The summary of the study of features (`feature_study.py full`): tables, and figures with intervals.

    python benchmarks/feature_summary.py docs/lab/features-study

The sparsity of an SAE is chosen on programs that are not scored: for even programs on odd ones, and the other way
round. It is the one with the best mean F1, for each kind, width, density and D/d; for the control, by the control's F1.
Intervals are those of a hierarchical bootstrap over programs, and over the densities, D/d and seeds of each. Cases that
differ only in their density have the same relation, partners and importances, and count as one program.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tracr.extras import need
from tracr.lab import Estimate, hierarchical_bootstrap, read_results
from tracr.lab.choices import read_configured
from tracr.lab.features import FeatureDials

KINDS = {"sae-l1": "L1", "sae-topk": "TopK", "sae-jumprelu": "JumpReLU"}
SCORES = ("f1", "precision", "recall", "cosine", "firing", "causal", "absorption", "splitting", "variance")
COLOURS = {"sae-l1": "#1b6ca8", "sae-topk": "#c2571a", "sae-jumprelu": "#2e7d32"}
Key = Callable[["Dictionary"], Any]


@dataclass(frozen=True)
class Dictionary:
    """A row of the study."""

    kind: str
    width: float
    sparsity: float
    density: float
    ratio: float
    program: int
    row: dict[str, Any]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Dictionary:
        """From a row of the table."""
        settings, dials = json.loads(row["settings"]), read_configured(row["case"]).settings
        return cls(
            row["method"],
            settings["width"],
            settings["k"] if "k" in settings else settings["penalty"],
            float(dials.get("density", FeatureDials.density)),
            json.loads(row["dials"])["ratio"],
            int(dials.get("seed", FeatureDials.seed)),
            row,
        )

    @property
    def setting(self) -> tuple[str, float, float, float]:
        """What a sparsity is chosen for."""
        return self.kind, self.width, self.density, self.ratio


def chosen(every: Sequence[Dictionary], by: str) -> list[Dictionary]:
    """The dictionaries with the sparsity that is best, by a column, on the programs of the other parity."""
    scores: dict[Any, list[float]] = defaultdict(list)
    for one in every:
        scores[one.setting, one.program % 2, one.sparsity].append(one.row[by])
    best: dict[Any, float] = {}
    for (setting, parity, sparsity), values in scores.items():
        before = best.get((setting, parity))
        if before is None or np.mean(values) > np.mean(scores[setting, parity, before]):
            best[setting, parity] = sparsity
    return [one for one in every if best[one.setting, 1 - one.program % 2] == one.sparsity]


def mean(some: Iterable[Dictionary], column: str, minus: str | None = None) -> Estimate | None:
    """The mean over programs of a column, or of its difference to another; `None` if it is undefined in all rows."""
    values: dict[str, list[float]] = defaultdict(list)
    for one in some:
        value, other = one.row[column], 0.0 if minus is None else one.row[minus]
        if value is not None and other is not None:
            values[str(one.program)].append(value - other)
    return hierarchical_bootstrap(values) if values else None


def between(some: Sequence[Dictionary], first: str, second: str, column: str) -> Estimate:
    """The mean over programs of the difference between two kinds, on the same subjects and with the same width."""
    pairs: dict[Any, dict[str, Dictionary]] = defaultdict(dict)
    for one in some:
        pairs[one.width, one.density, one.ratio, one.program, one.row["seed"]][one.kind] = one
    values: dict[str, list[float]] = defaultdict(list)
    for pair in pairs.values():
        values[str(pair[first].program)].append(pair[first].row[column] - pair[second].row[column])
    return hierarchical_bootstrap(values)


def grouped(some: Iterable[Dictionary], key: Key) -> dict[Any, list[Dictionary]]:
    """The dictionaries by a key, in its order."""
    found: dict[Any, list[Dictionary]] = defaultdict(list)
    for one in some:
        found[key(one)].append(one)
    return dict(sorted(found.items()))


def tables(every: Sequence[Dictionary]) -> dict[str, list[list[Any]]]:
    """All tables by name, the first row of each has the names of its columns."""
    mine, control = chosen(every, "f1"), chosen(every, "control_f1")
    usual = [one for one in mine if one.width == 1]
    beside = grouped((one for one in control if one.width == 1), lambda one: (one.density, one.ratio, one.kind))
    names = ("f1", "causal", "null_f1", "ceiling_f1", "ceiling_causal", "variance", "right_answers")
    found: dict[str, list[list[Any]]] = {
        "by_density_and_ratio": [["density", "D/d", "SAE", *names, "control_f1", "control_causal"]],
        "by_width": [["SAE", "width", *SCORES]],
        "between_kinds": [["density", "first minus second", "f1", "causal"]],
        "sparsities": [["SAE", "width", "density", "D/d", "chosen for even programs", "for odd programs"]],
    }
    for key, some in grouped(usual, lambda one: (one.density, one.ratio, one.kind)).items():
        own = [mean(some, name) for name in names]
        others = [mean(beside[key], name) for name in ("control_f1", "control_causal")]
        found["by_density_and_ratio"].append([key[0], key[1], KINDS[key[2]], *own, *others])
    for key, some in grouped(mine, lambda one: (one.kind, one.width)).items():
        found["by_width"].append([KINDS[key[0]], key[1], *(mean(some, name) for name in SCORES)])
    for density, some in [("all", usual), *grouped(usual, lambda one: one.density).items()]:
        for first, second in (("sae-l1", "sae-topk"), ("sae-l1", "sae-jumprelu"), ("sae-topk", "sae-jumprelu")):
            differences = [between(some, first, second, name) for name in ("f1", "causal")]
            found["between_kinds"].append([density, f"{KINDS[first]} minus {KINDS[second]}", *differences])
    for setting, some in grouped(mine, lambda one: one.setting).items():
        sparsities = [next(one.sparsity for one in some if one.program % 2 == parity) for parity in (0, 1)]
        found["sparsities"].append([KINDS[setting[0]], *setting[1:], *sparsities])
    return found


def figures(every: Sequence[Dictionary]) -> dict[str, Any]:
    """All figures by name."""
    return {"by_ratio": by_ratio(every), "reconstruction": reconstruction(every)}


def by_ratio(every: Sequence[Dictionary]) -> Any:
    """F1 and causal recovery by D/d, for each density: the kinds of SAE, their control, the null and the ceiling."""
    plot = need("matplotlib.pyplot", "viz")
    mine, control = ([one for one in chosen(every, by) if one.width == 1] for by in ("f1", "control_f1"))
    densities, ratios = (sorted({getattr(one, name) for one in every}) for name in ("density", "ratio"))
    figure, axes = plot.subplots(2, len(densities), figsize=(10, 6), sharex=True, sharey=True, layout="constrained")
    for (row, score), (column, density) in ((a, b) for a in enumerate(("f1", "causal")) for b in enumerate(densities)):
        place = axes[row][column]
        here = [one for one in mine if one.density == density]
        for kind, colour in COLOURS.items():
            _line(place, ratios, [one for one in here if one.kind == kind], score, colour, KINDS[kind], "o-")
            orthogonal = mean(
                (one for one in control if one.density == density and one.kind == kind), f"control_{score}"
            )
            assert orthogonal is not None
            place.errorbar([1], [orthogonal.mean], _error([orthogonal]), color=colour, fmt="s", capsize=2)
        _line(place, ratios, here, f"ceiling_{score}", "#777777", "ceiling (told where features fire)", "^--")
        _line(place, ratios, here, f"null_{score}", "#bbbbbb", "null (random atoms)", "v--")
        place.set(xscale="log", xticks=[1, *ratios], xticklabels=["1\n(control)", *(f"{r:g}" for r in ratios)])
        place.minorticks_off()
        place.set_ylim(-0.03, 1.05)
        if not row:
            place.set_title(f"density {density:g}")
        if not column:
            place.set_ylabel({"f1": "F1 of recovered features", "causal": "causal recovery"}[score])
    figure.supxlabel("D/d: labels for each dimension")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=8)
    return figure


def _line(
    place: Any, ratios: Sequence[float], some: Sequence[Dictionary], column: str, colour: str, label: str, style: str
) -> None:
    """The mean of a column by D/d, with intervals."""
    points = [mean((one for one in some if one.ratio == ratio), column) for ratio in ratios]
    known = [point for point in points if point is not None]
    place.errorbar(ratios, [one.mean for one in known], _error(known), fmt=style, color=colour, label=label, capsize=2)


def _error(points: Sequence[Estimate]) -> list[list[float]]:
    """The distances of the ends of intervals from means."""
    return [
        [max(0.0, one.mean - (one.mean if one.low is None else one.low)) for one in points],
        [max(0.0, (one.mean if one.high is None else one.high) - one.mean) for one in points],
    ]


def reconstruction(every: Sequence[Dictionary]) -> Any:
    """F1 by the share of variance, a dot for each dictionary."""
    plot = need("matplotlib.pyplot", "viz")
    ratios = sorted({one.ratio for one in every})
    figure, axes = plot.subplots(1, len(ratios), figsize=(10, 3.4), sharex=True, sharey=True, layout="constrained")
    for place, ratio in zip(axes, ratios, strict=True):
        for kind, colour in COLOURS.items():
            here = [one for one in every if one.ratio == ratio and one.kind == kind]
            points = [[one.row["variance"] for one in here], [one.row["f1"] for one in here]]
            place.scatter(*points, s=2, alpha=0.25, color=colour, label=KINDS[kind], linewidths=0, rasterized=True)
        place.set(title=f"D/d = {ratio:g}", xlim=(0, 1.02), ylim=(-0.03, 1.03), xlabel="share of variance")
    axes[0].set_ylabel("F1 of recovered features")
    axes[0].legend(markerscale=4, fontsize=8, loc="upper left")
    return figure


def main() -> None:
    """Write tables and figures into the folder of a study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    need("matplotlib", "viz").use("Agg")
    every = [Dictionary.of(row) for row in read_results(folder)]
    for name, rows in tables(every).items():
        (folder / "tables").mkdir(exist_ok=True)
        with (folder / "tables" / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                [["" if cell is None else str(cell) for cell in row] for row in rows]
            )
    for name, figure in figures(every).items():
        (folder / "figures").mkdir(exist_ok=True)
        figure.savefig(folder / "figures" / f"{name}.png", dpi=110, metadata={"Software": ""})


if __name__ == "__main__":
    main()
