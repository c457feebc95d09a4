"""The plots of the benchmark: ratios and mismatches as tables in colour, sizes against each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from cases import SIZES, Case
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from measures import SPEED, ratio, shared
from running import LEVELS, Results

__all__ = ["draw"]

STYLE: dict[Any, Any] = {"svg.hashsalt": "tracr", "font.family": "DejaVu Sans", "font.size": 8}
COLOURS = {"level 1": "#2b6cb0", "level 2": "#dd6b20"}
SHAPES = {"parameters": "parameters", "non_zeros": "non-zero parameters", "dimensions": "dimensions"}
NEVER = "#e8e8e8"  # where there is nothing to compare


def draw(results: Results, folder: Path) -> None:
    """Write every plot that has measurements."""
    if not shared(results):
        return
    figures = {f"ratios-{level.replace(' ', '')}": ratios(results, level) for level in LEVELS}
    figures |= {"sizes": sizes(results), "mismatches": mismatches(results)}
    for name, figure in figures.items():
        with matplotlib.rc_context(STYLE):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def ratios(results: Results, level: str) -> Figure:
    """How many times better, by program and size, a panel for each measure."""
    measures = [name for name in SPEED if name != "memory"]

    def cell(measure: str) -> Callable[[Case], tuple[float, str] | None]:
        def found(case: Case) -> tuple[float, str] | None:
            value = ratio(results, case, level, measure)
            return None if value is None else (math.log10(value.value), str(value))

        return found

    panels = {SPEED[measure]: cell(measure) for measure in measures}
    title = f"How many times better {level} is than the original"
    return _panels(results, panels, title, TwoSlopeNorm(0, -2, 6), "PRGn", rows=2)


def mismatches(results: Results) -> Figure:
    """How many of the inputs the original answers wrongly, by program and size."""

    def cell(how: str) -> Callable[[Case], tuple[float, str] | None]:
        def found(case: Case) -> tuple[float, str] | None:
            record = results.get(case, "original")
            if record is None or not record.get(how, {}).get("inputs"):
                return None
            count = record[how]
            return count["wrong"] / count["inputs"], f"{count['wrong']:,}"

        return found

    panels = {"inputs as they are": cell("unpadded"), "padded to the longest": cell("padded")}
    title = "Inputs that the original answers wrongly, `None` included (colour: their share)"
    return _panels(results, panels, title, Normalize(0, 1.4), "Reds", rows=1)


def _panels(
    results: Results,
    panels: dict[str, Callable[[Case], tuple[float, str] | None]],
    title: str,
    norm: Normalize,
    colours: str,
    rows: int,
) -> Figure:
    """Panels with a row for each program, a column for each size, and in each cell a number."""
    programs = list(dict.fromkeys(case.program for case in shared(results)))
    columns = [size for size in SIZES if shared(results, sizes=(size,))]
    across = math.ceil(len(panels) / rows)
    with matplotlib.rc_context(STYLE):
        width, height = 1.6 + across * (0.35 + 0.55 * len(columns)), 0.9 + rows * (0.55 + 0.21 * len(programs))
        figure = Figure(figsize=(max(width, 5), height), layout="constrained", facecolor="white")
        axes = figure.subplots(rows, across, squeeze=False, sharey=True)
        for axis, (name, cell) in zip(axes.ravel(), panels.items(), strict=False):
            found = [[cell(Case(program, *size)) for size in columns] for program in programs]
            image = [[math.nan if each is None else each[0] for each in row] for row in found]
            palette = matplotlib.colormaps[colours].copy()
            palette.set_bad(NEVER)
            axis.imshow(image, norm=norm, cmap=palette, aspect="auto")
            for y, row in enumerate(found):
                for x, each in enumerate(row):
                    axis.text(x, y, "–" if each is None else each[1], ha="center", va="center", fontsize=7)
            axis.set_title(name, fontsize=9)
            axis.set_xticks(range(len(columns)), [f"{tokens},\u200a{length}" for tokens, length in columns])
            axis.set_yticks(range(len(programs)), programs)
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
        for axis in axes.ravel()[len(panels) :]:
            axis.set_visible(False)
        figure.suptitle(title, fontsize=10)
        figure.supxlabel("vocabulary, length", fontsize=8)
    return figure


def sizes(results: Results) -> Figure:
    """Our sizes against the original's, a point for each program and size."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.4), layout="constrained", facecolor="white")
        for axis, (key, name) in zip(figure.subplots(1, 3), SHAPES.items(), strict=True):
            for level, marker in zip(LEVELS, "ox", strict=True):
                points = _points(results, level, key)
                its, mine = [x for x, _ in points], [y for _, y in points]
                axis.plot(its, mine, marker, ms=4, mfc="none", color=COLOURS[level], label=level)
            for factor, style in ((1, "-"), (10, "--"), (100, ":")):
                line = [end / factor for end in (1, 1e9)]
                axis.plot(
                    (1, 1e9),
                    line,
                    style,
                    lw=0.8,
                    color="#888888",
                    label=f"{factor}× smaller" if factor > 1 else "equal",
                )
            axis.set(xscale="log", yscale="log", xlabel="the original", ylabel="this compiler", title=name)
            _fit(axis, _points(results, "level 1", key) + _points(results, "level 2", key))
        axis.legend(fontsize=7, loc="upper left")
    return figure


def _points(results: Results, level: str, key: str) -> list[tuple[int, int]]:
    pairs = ((results.get(case, "original"), results.get(case, level)) for case in shared(results))
    return [
        (its["size"][key], ours["size"][key])
        for its, ours in pairs
        if its and ours and "size" in its and "size" in ours
    ]


def _fit(axis: Any, points: list[tuple[int, int]]) -> None:
    if points:
        xs, ys = zip(*points, strict=True)
        axis.set_xlim(min(xs) / 1.6, max(xs) * 1.6)
        axis.set_ylim(min(ys) / 1.6, max(max(ys), max(xs) / 4) * 1.6)
