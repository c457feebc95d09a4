"""The page of a track other than "edges": its sections, plots of scores, and the table of what was left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from tracr.lab.reporting.html_pieces import escaped
from tracr.lab.reporting.page import Content
from tracr.lab.reporting.plots import interval_panel, limits_of
from tracr.lab.reporting.tables import ReportTable
from tracr.lab.reporting.track_table import TrackTable
from tracr.lab.track import Track

__all__ = ["left_out_table", "score_panels", "track_content"]


def track_content(title: str, parts: Mapping[str, list[str]], table: TrackTable, track: Track) -> Content:
    """What the report of a track shows: these parts, by their headings."""
    sections = tuple((f"part-{number}", heading, "".join(body)) for number, (heading, body) in enumerate(parts.items()))
    data = {"methods": table.methods, "realisations": table.realisations, "scores": list(track.scores), "cases": {}}
    return Content(title, sections, json.dumps(data).replace("<", "\\u003c"))


def score_panels(table: TrackTable, scores: Iterable[str]) -> list[str]:
    """A plot of each of these scores on each realisation."""
    found = []
    for score in scores:
        limits = limits_of(one.scores[score] for one in table.standings.values())
        plots = []
        for realisation in table.realisations:
            items = [
                (method, table.standings[realisation, method].scores[score])
                for method in table.methods
                if (realisation, method) in table.standings
            ]
            plots.append(
                f'<figure data-realisation="{escaped(realisation)}"><figcaption>{escaped(realisation)}</figcaption>'
                f"{interval_panel(f'{score} on {realisation}', items, limits)}</figure>"
            )
        found.append(f'<div class="panels"><h3>{score.replace("_", " ")}</h3>{"".join(plots)}</div>')
    return found


def left_out_table(table: TrackTable) -> ReportTable:
    """What does not count for the scores, and why."""
    groups = Counter(
        (row.realisation, row.method, row.given["error"] or "not admitted") for row in table.rows if not row.scored
    )
    undefined = [
        (*key, f"{name} undefined", number)
        for key, one in table.standings.items()
        for name, number in one.undefined.items()
        if number
    ]
    return ReportTable(
        "left_out",
        "Rows that failed or are of models that were refused, with the error; and undefined scores.",
        ("realisation", "method", "what", "rows"),
        (*((*key, number) for key, number in groups.items()), *undefined),
    )
