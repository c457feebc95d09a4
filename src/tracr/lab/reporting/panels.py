"""The plots of the page in panels: methods on realisations, methods by dials, faithfulness and truth."""

from __future__ import annotations

from tracr.lab.reporting.dial_series import dial_series
from tracr.lab.reporting.html_pieces import escaped
from tracr.lab.reporting.plots import interval_panel, limits_of, line_panel, scatter_plot
from tracr.lab.reporting.results_table import SCORE_NAMES, ResultTable

__all__ = ["scatters", "score_panels"]


def score_panels(table: ResultTable) -> list[str]:
    """A panel for each realisation and each score; then one for each method and dial."""
    options = "".join(f'<option value="{name}">{escaped(shown)}</option>' for name, shown in SCORE_NAMES.items())
    found = [
        "<p>The mean of each method, with its interval. CMD is better if it is smaller, all other scores if they are "
        "larger.</p>",
        '<form class="filters" aria-label="Score"><label>Score <select id="filter-score">'
        f"{options}</select></label></form>",
    ]
    for score, shown in SCORE_NAMES.items():
        limits = limits_of(one.scores[score] for one in table.standings.values())
        panels = []
        for realisation in table.realisations:
            cells = [(method, table.standings.get((realisation, method))) for method in table.methods]
            items = [(method, one.scores[score]) for method, one in cells if one is not None]
            panels.append(
                f'<figure data-realisation="{escaped(realisation)}"><figcaption>{escaped(realisation)}</figcaption>'
                f"{interval_panel(f'{shown} on {realisation}', items, limits)}</figure>"
            )
        found.append(f'<div class="panels" data-score="{score}"><h3>{escaped(shown)}</h3>{"".join(panels)}</div>')
        found += _dials(table, score, shown)
    return found


def _dials(table: ResultTable, score: str, shown: str) -> list[str]:
    found = []
    limits = limits_of(one.scores[score] for one in table.standings.values())
    for series in dial_series(table.realisations):
        panels = []
        for method in table.methods:
            cells = [table.standings.get((label, method)) for label in series.labels]
            items = [(v, one.scores[score] if one else None) for v, one in zip(series.values, cells, strict=True)]
            name = f"{shown} of {method} on {series.realisation}"
            panels.append(
                f'<figure data-method="{escaped(method)}"><figcaption>{escaped(method)}</figcaption>'
                f"{line_panel(name, series.dial, items, limits)}</figure>"
            )
        heading = f"{shown} by the dial {series.dial} of {series.realisation}"
        found.append(f'<div class="panels" data-score="{score}"><h3>{escaped(heading)}</h3>{"".join(panels)}</div>')
    return found


def scatters(table: ResultTable) -> str:
    """CPR and CMD against AUROC, a dot for each circuit."""
    plots = []
    for faithfulness in ("cpr", "cmd"):
        points = [
            (x, y, bool(row.scores["exact"]))
            for row in table.scored
            if (x := row.scores[faithfulness]) is not None and (y := row.scores["auroc"]) is not None
        ]
        names = (SCORE_NAMES[faithfulness], SCORE_NAMES["auroc"])
        if points:
            plots.append(f"<figure>{scatter_plot(f'{names[1]} by {names[0]}', names, points)}</figure>")
    legend = '<p class="legend"><i class="dot exact"></i> exactly the truth, <i class="dot inexact"></i> not. '
    told = "A dot for each circuit, darker for several; the most extreme hundredth is drawn at the border.</p>"
    return f'<div class="panels">{"".join(plots)}</div>{legend}{told}' if plots else ""
