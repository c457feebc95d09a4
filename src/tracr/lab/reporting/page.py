"""The page of a report, or of several: one HTML file with tables, plots and circuits. It loads no other file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Protocol

from tracr.lab.reporting.case_pages import CasePage, case_pages
from tracr.lab.reporting.html_pieces import escaped, listed, notes_html, paragraph, shown_table
from tracr.lab.reporting.panels import scatters, score_panels
from tracr.lab.reporting.results_table import SCORE_NAMES, ResultTable
from tracr.lab.reporting.sentences import (
    about_correlations,
    about_leads,
    about_parts,
    about_seeds,
    about_table,
)
from tracr.lab.reporting.tables import Findings, ReportTable
from tracr.version import __version__

__all__ = ["Content", "case_filter", "content_of", "filters", "page_of", "page_of_several"]

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body{marks}>
<header>
<h1>{title}</h1>
<button type="button" id="theme" hidden>Theme</button>
</header>
<nav aria-label="Contents">{contents}</nav>
<main>
{main}
</main>
<footer><p>Made by <code>tracr lab report</code>, version {version}. Everything on this page comes from its table of \
results.</p></footer>
<p id="status" role="status" class="unseen"></p>
{data}
<script>{script}</script>
</body>
</html>
"""
HOW = (
    "A mean is that over cases of the mean over seeds. The interval in brackets has 95 %: cases are drawn with "
    "replacement, and for each its seeds. With one case there is no interval, and no number is given."
)
SECTIONS = (
    ("leaderboard", "Leaderboard"),
    ("plots", "Methods and realisations"),
    ("question-1", "1. Which method finds the circuit?"),
    ("question-2", "2. Does faithfulness measure truth?"),
    ("question-3", "3. How much do answers vary between seeds?"),
    ("question-4", "4. Are decoys and backups reported?"),
    ("meaning", "What it means, and what it does not"),
    ("cases", "Cases"),
    ("left-out", "What was left out"),
)
LEGEND = (
    '<p class="legend">Lines are needed edges: <i class="always"></i> needed alone with every seed, '
    '<i class="sometimes"></i> with some seeds, or only jointly. After a seed is chosen: <i class="found"></i> found, '
    '<i class="missed"></i> missed, <i class="extra"></i> extra. As many edges are found as are needed; if a group of '
    "equal numbers fits only in part, its needed edges are missed and its inert ones extra.</p>"
)
LIMITS = (
    "Intervals speak about cases and seeds like these. Cases are small programs, not a sample of the circuits of "
    "language models.",
    "The best method of a realisation was chosen with the data that its lead is measured on, so that the lead is a "
    "little too large.",
    "Scores belong to their pairs, ablation and granularity. Inert edges are those that were not found to be needed.",
    "A correlation over all circuits mixes cases and realisations; that within a subject compares methods on one "
    "model.",
)


@dataclass(frozen=True)
class Content:
    """What a report shows: its title, sections (a name, a heading, HTML), and the data for its script, as JSON."""

    title: str
    sections: tuple[tuple[str, str, str], ...]
    data: str

    @property
    def links(self) -> str:
        """The table of contents."""
        return "".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in self.sections)

    @property
    def main(self) -> str:
        """The sections."""
        return "\n".join(
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{heading}</h2>{body}</section>'
            for name, heading, body in self.sections
        )

    @property
    def script(self) -> str:
        """The data, in an element of the page."""
        return f'<script type="application/json" id="lab-data">{self.data}</script>'


class FilteredTable(Protocol):
    """A table whose rows have realisations and methods."""

    @property
    def realisations(self) -> Sequence[str]:
        """Their names."""

    @property
    def methods(self) -> Sequence[str]:
        """Their names."""


def content_of(title: str, found: Findings, tables: dict[str, ReportTable], notes: str) -> Content:
    """What the report of the track "edges" shows."""
    table = found.table
    pages = case_pages(table)
    bodies = {
        "leaderboard": [
            paragraph(about_table(table)),
            f"<p>{HOW}</p>",
            filters(table),
            shown_table(tables["leaderboard"]),
        ],
        "plots": score_panels(table),
        "question-1": [listed(about_leads(found)), shown_table(tables["leads"]), shown_table(tables["changes"])],
        "question-2": [listed(about_correlations(found)), scatters(table), shown_table(tables["correlations"])],
        "question-3": [listed(about_seeds(found)), shown_table(tables["seeds"])],
        "question-4": [listed(about_parts(found)), shown_table(tables["parts"])],
        "meaning": [notes_html(notes), listed(LIMITS)],
        "cases": [case_filter(), shown_table(tables["cases"]), LEGEND, *map(_case, pages)],
        "left-out": [shown_table(tables["left_out"]), shown_table(tables["errors"])],
    }
    sections = tuple((name, heading, "".join(bodies[name])) for name, heading in SECTIONS)
    return Content(title, sections, _data(table, pages))


def page_of(content: Content) -> str:
    """The page of one report."""
    return _page(content.title, content.links, content.main, " data-report", content.script)


def page_of_several(title: str, contents: Mapping[str, Content]) -> str:
    """A page of several reports, by names for their ids; each has its own filters."""
    articles = []
    for name, one in contents.items():
        heading = f'<h2 class="track" id="{name}-name">{escaped(one.title)}</h2>'
        inner = _renamed(f"<nav>{one.links}</nav>{_lowered(one.main)}{one.script}", f"{name}-")
        articles.append(f'<article id="{name}" data-report aria-labelledby="{name}-name">{heading}{inner}</article>')
    links = "".join(f'<a href="#{name}">{escaped(one.title)}</a>' for name, one in contents.items())
    return _page(title, links, "\n".join(articles), "", "")


def _page(title: str, links: str, main: str, marks: str, data: str) -> str:
    page = PAGE.format(
        title=escaped(title),
        style=page_file("page.css"),
        contents=links,
        main=main,
        marks=marks,
        version=escaped(__version__),
        data=data,
        script=page_file("page.js"),
    )
    return page.encode("utf-8", "replace").decode()


def _renamed(html: str, prefix: str) -> str:
    """HTML with a prefix on all ids, and on what refers to them. Texts are escaped: they have no quotation marks."""
    html = re.sub(r'\b(id|for|aria-labelledby|aria-describedby)="([^"]+)"', rf'\1="{prefix}\2"', html)
    return re.sub(r'(href="|url\()#', rf"\1#{prefix}", html)


def _lowered(html: str) -> str:
    """HTML whose headings are one level lower."""
    return re.sub(r"<(/?)h([23])\b", lambda found: f"<{found[1]}h{int(found[2]) + 1}", html)


def page_file(name: str) -> str:
    """The text of a part of the page."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _data(table: ResultTable, pages: Sequence[CasePage]) -> str:
    content = {
        "methods": table.methods,
        "realisations": table.realisations,
        "scores": list(SCORE_NAMES.values()),
        "cases": {page.name: page.data for page in pages},
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def filters(table: FilteredTable) -> str:
    """The choice of a realisation and of a method."""

    def options(names: Iterable[str]) -> str:
        return "".join(f"<option>{escaped(name)}</option>" for name in names)

    return (
        '<form class="filters" aria-label="Filters"><label>Realisation <select id="filter-realisation">'
        f'<option value="">all</option>{options(table.realisations)}</select></label>'
        '<label>Method <select id="filter-method"><option value="">all</option>'
        f"{options(table.methods)}</select></label>"
        "<span>These filters apply to all tables and plots of this run.</span></form>"
    )


def case_filter() -> str:
    """The choice of cases."""
    return (
        '<form class="filters" aria-label="Filter of cases"><label>Case <input id="filter-case" type="search" '
        'autocomplete="off" placeholder="part of a name"></label></form>'
    )


def _case(page: CasePage) -> str:
    name = escaped(page.name)
    drawn = ""
    if page.drawing is not None and page.drawn is not None:
        drawn = (
            f'<p class="says">The circuit of the realisation {escaped(page.drawn)}:</p><div class="scroll drawing" '
            f'role="region" tabindex="0" aria-label="The circuit of {name}">{page.drawing.svg}</div>'
        )
    told = "".join(f"<dt>{escaped(key)}</dt><dd>{escaped(text)}</dd>" for key, text in page.components.items() if text)
    told = f"<dl>{told}</dl>" if told else ""
    described = f'<span class="soft">{escaped(page.description)}</span>' if page.description else ""
    return (
        f'<details class="case" data-case="{name}"><summary><b>{name}</b> {described}</summary><div class="sides">'
        f'<div class="side">{drawn}<p class="edges-said" aria-live="polite"></p>{told}</div>'
        '<div class="found"><noscript>This table needs JavaScript.</noscript></div></div></details>'
    )
