"""The publication figures of a report, as matplotlib Figures (extra `viz`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracr.extras import need
from tracr.lab.bootstrap import Estimate
from tracr.lab.reporting.dial_series import DialSeries, dial_series
from tracr.lab.reporting.results_table import SCORE_NAMES, ResultTable
from tracr.lab.reporting.tables import Findings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_makers"]

WIDE = 7.0  # inches
INK, ACCENT, WARM = "#1f2430", "#1f5fa8", "#c2660a"


def figure_makers(found: Findings) -> dict[str, Callable[[], Figure]]:
    """The name of each figure, and a function that draws it."""
    table = found.table
    made: dict[str, Callable[[], Figure]] = {}
    for score, shown in SCORE_NAMES.items():
        if any(one.scores[score] for one in table.standings.values()):
            made[f"{score}_by_realisation"] = _bound(_by_realisation, table, score, shown)
            for series in dial_series(table.realisations):
                name = f"{score}_by_{series.dial}_of_{series.realisation}"
                made[name] = _bound(_by_dial, table, score, shown, series)
    if any(row.scores["cpr"] is not None for row in table.scored):
        made["faithfulness_and_truth"] = _bound(_faithfulness, table)
        made["correlations"] = _bound(_correlations, found)
    if any(one.deviation for one in found.spreads):
        made["seeds"] = _bound(_seeds, found)
    return made


def _bound(draw: Callable[..., Figure], *given: Any) -> Callable[[], Figure]:
    return lambda: draw(*given)


def _figure(width: float, height: float) -> Figure:
    need("matplotlib", "viz")
    from tracr.viz.canvas import InlineFigure

    return InlineFigure(figsize=(width, height), layout="constrained", facecolor="white")


def _dots(axes: Any, items: Sequence[tuple[str, Estimate | None]]) -> None:
    """A dot with its interval for each item; those without an interval are left empty."""
    for number, (_, estimate) in enumerate(items):
        if estimate is not None and estimate.low is not None and estimate.high is not None:
            axes.plot([estimate.low, estimate.high], [number, number], color=ACCENT, linewidth=1.2)
            axes.plot([estimate.mean], [number], "o", color=ACCENT, markersize=3.5)
    axes.set_yticks(range(len(items)), [_plain(label) for label, _ in items], fontsize=7)
    axes.set_ylim(len(items) - 0.5, -0.5)
    _quiet(axes)


def _plain(text: str) -> str:
    """A text without mathematics."""
    return text.replace("$", r"\$")


def _quiet(axes: Any) -> None:
    axes.grid(color="#dfe2e8", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=7, length=2)
    axes.spines[["top", "right"]].set_visible(False)


def _grid(count: int, height: float) -> tuple[Figure, list[Any]]:
    """A figure of panels, three in a row, with shared axes."""
    columns = min(3, count)
    rows = -(-count // columns)
    figure = _figure(WIDE, height * rows + 0.3)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    for panel in panels[count:]:
        panel.set_visible(False)
    for panel in panels[max(0, count - columns) : count]:
        panel.tick_params(labelbottom=True)
    return figure, panels


def _by_realisation(table: ResultTable, score: str, shown: str) -> Figure:
    figure, panels = _grid(len(table.realisations), 0.45 + 0.16 * len(table.methods))
    for realisation, axes in zip(table.realisations, panels, strict=False):
        cells = [(method, table.standings.get((realisation, method))) for method in table.methods]
        _dots(axes, [(method, one.scores[score] if one else None) for method, one in cells])
        axes.set_title(_plain(realisation), fontsize=8)
    figure.supxlabel(f"{shown} (mean over cases, 95 % interval)", fontsize=8)
    return figure


def _by_dial(table: ResultTable, score: str, shown: str, series: DialSeries) -> Figure:
    figure, panels = _grid(len(table.methods), 1.5)
    for method, axes in zip(table.methods, panels, strict=False):
        cells = [table.standings.get((label, method)) for label in series.labels]
        known = [(x, one.scores[score]) for x, one in enumerate(cells) if one]
        drawn = [(x, one) for x, one in known if one is not None and one.low is not None]
        axes.plot(
            [x for x, _ in drawn], [one.mean for _, one in drawn], "o-", color=ACCENT, markersize=3.5, linewidth=1
        )
        for x, one in drawn:
            axes.plot([x, x], [one.low, one.high], color=ACCENT, linewidth=1.2)
        axes.set_xticks(range(len(series.values)), [_plain(value) for value in series.values])
        axes.set_xlim(-0.5, len(series.values) - 0.5)
        axes.set_title(_plain(method), fontsize=8)
        _quiet(axes)
    figure.supxlabel(_plain(f"{series.dial} of {series.realisation}"), fontsize=8)
    figure.supylabel(f"{shown} (95 % interval)", fontsize=8)
    return figure


def _faithfulness(table: ResultTable) -> Figure:
    figure = _figure(WIDE, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for faithfulness, axes in zip(("cpr", "cmd"), panels, strict=True):
        for exact, colour, label in ((False, WARM, "not exactly the truth"), (True, ACCENT, "exactly the truth")):
            points = [
                (row.scores[faithfulness], row.scores["auroc"])
                for row in table.scored
                if bool(row.scores["exact"]) == exact
                and row.scores[faithfulness] is not None
                and row.scores["auroc"] is not None
            ]
            xs, ys = [x for x, _ in points], [y for _, y in points]
            axes.scatter(
                xs, ys, s=7, color=colour, alpha=0.45, linewidths=0, label=label, rasterized=len(points) > 2_000
            )
        axes.set_xlabel(SCORE_NAMES[faithfulness], fontsize=8)
        _quiet(axes)
    panels[0].set_ylabel("AUROC", fontsize=8)
    panels[0].legend(fontsize=7, frameon=False, loc="lower right")
    return figure


def _correlations(found: Findings) -> Figure:
    groups: Mapping[str, list[tuple[str, Estimate | None]]] = {"all circuits": [], "within a subject": []}
    for one in found.correlations:
        label = f"{SCORE_NAMES[one.faithfulness]}, {SCORE_NAMES[one.truth]}: {one.where}"
        groups["all circuits"].append((label, one.pooled))
        groups["within a subject"].append((label, one.within))
    figure = _figure(WIDE, 0.8 + 0.16 * len(found.correlations))
    for (name, items), axes in zip(groups.items(), figure.subplots(1, 2, sharey=True), strict=True):
        _dots(axes, items)
        axes.set_xlim(-1.05, 1.05)
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.set_title(name, fontsize=8)
    figure.supxlabel("Spearman's rank correlation (95 % interval)", fontsize=8)
    return figure


def _seeds(found: Findings) -> Figure:
    known = [one for one in found.spreads if one.deviation]
    figure = _figure(WIDE, 0.8 + 0.16 * len(known))
    left, right = figure.subplots(1, 2, sharey=True)
    _dots(left, [(f"{one.method} on {one.realisation}", one.deviation) for one in known])
    _dots(right, [(f"{one.method} on {one.realisation}", one.overlap) for one in known])
    left.set_xlabel("standard deviation of AUROC over seeds", fontsize=8)
    right.set_xlabel("overlap of found edges between seeds", fontsize=8)
    return figure
