"""Pieces of the page: sortable tables, sentences, and the text beside the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from tracr.lab.bootstrap import Estimate
from tracr.lab.reporting.sentences import estimate_text
from tracr.lab.reporting.tables import ReportTable

__all__ = ["escaped", "html_table", "listed", "notes_html", "paragraph", "shown_table"]


def escaped(text: Any) -> str:
    """A text for HTML."""
    return escape(str(text))


def paragraph(sentences: Iterable[str]) -> str:
    """Sentences as one paragraph."""
    return f"<p>{escaped(' '.join(sentences))}</p>"


def listed(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    return f"<ul>{''.join(f'<li>{escaped(one)}</li>' for one in sentences)}</ul>"


def html_table(table: ReportTable) -> str:
    """A table whose columns can be sorted; rows name their realisation, method and case for the filters."""
    heads = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{escaped(name)}</button></th>'
        for name in table.columns
    )
    rows = "".join(
        f"<tr{_marks(table, row)}>{''.join(_cell(cell, place) for place, cell in enumerate(row))}</tr>"
        for row in table.rows
    )
    return (
        f'<table id="table-{table.name}" aria-describedby="about-{table.name}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _marks(table: ReportTable, row: Sequence[Any]) -> str:
    names = {"realisation": "realisation", "method": "method", "case": "case"}
    marks = [(names[column], cell) for column, cell in zip(table.columns, row, strict=True) if column in names]
    return "".join(f' data-{name}="{escaped(cell)}"' for name, cell in marks)


def _cell(cell: Any, place: int) -> str:
    tag, end = ('th scope="row"', "th") if place == 0 else ("td", "td")
    if cell is None:
        return f'<{tag} class="none">–</{end}>'
    if isinstance(cell, Estimate):
        if cell.low is None:
            return f'<{tag} class="none">{estimate_text(cell)}</{end}>'
        mean, interval = estimate_text(cell).split(" ", 1)
        return (
            f'<{tag} class="number" data-value="{cell.mean!r}" title="{cell.cases} cases, {cell.values} values">'
            f"{mean} <small>{interval}</small></{end}>"
        )
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        shown = f"{cell:,}" if isinstance(cell, int) else f"{cell:.3f}" if abs(cell) < 100 else f"{cell:,.0f}"
        return f'<{tag} class="number" data-value="{cell!r}">{shown}</{end}>'
    return f"<{tag}>{escaped(cell)}</{end}>"


def shown_table(table: ReportTable) -> str:
    """A table with what it says, in a box that scrolls."""
    if not table.rows:
        return f'<p class="none">{escaped(table.says)} There are none.</p>'
    title = table.name.replace("_", " ")
    return (
        f'<p class="says" id="about-{table.name}">{escaped(table.says)}</p>'
        f'<div class="scroll" role="region" aria-label="Table: {title}" tabindex="0">{html_table(table)}</div>'
    )


def notes_html(notes: str) -> str:
    """The text beside the results: paragraphs, headings with #, lists with -, `code` and **bold**; no HTML."""
    if not notes.strip():
        return "<p>No text was written beside these results (<code>notes.md</code>).</p>"
    found = []
    for block in re.split(r"\n\s*\n", notes.strip()):
        lines = [line.strip() for line in block.splitlines()]
        if all(line.startswith("- ") for line in lines):
            found.append(f"<ul>{''.join(f'<li>{_inline(line[2:])}</li>' for line in lines)}</ul>")
        elif lines[0].startswith("#") and len(lines) == 1:
            found.append(f"<h3>{_inline(lines[0].lstrip('# '))}</h3>")
        else:
            found.append(f"<p>{_inline(' '.join(lines))}</p>")
    return "".join(found)


def _inline(text: str) -> str:
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", shown)
