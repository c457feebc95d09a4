"""What the page says about each case: its circuit, drawn once, and what every method found, as data for the script."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracr import zoo
from tracr.errors import TracrError
from tracr.lab.catalogue import case as case_named
from tracr.lab.reporting.circuit_drawing import CircuitDrawing, component_name, draw_circuit
from tracr.lab.reporting.comparing import BASE
from tracr.lab.reporting.results_table import SCORE_NAMES, ResultRow, ResultTable
from tracr.lab.subject_cache import weights_digest

__all__ = ["CasePage", "case_pages"]

DIGITS = 4  # of scores on the page


@dataclass(frozen=True)
class CasePage:
    """A case on the page.

    Args:
        name, description: of the case; the description is empty if the zoo has no such program.
        drawn: the realisation whose circuit is drawn; `None` if no row has one.
        drawing: the drawing.
        components: what components do, by their names for readers; only if the zoo's model is the one in the table.
        data: the rows, for the script.
    """

    name: str
    description: str
    drawn: str | None
    drawing: CircuitDrawing | None
    components: Mapping[str, str]
    data: Mapping[str, Any]


def case_pages(table: ResultTable) -> list[CasePage]:
    """A page for each case."""
    by_case: dict[str, list[ResultRow]] = defaultdict(list)
    for row in table.rows:
        by_case[row.case].append(row)
    return [_page(name, by_case[name], table) for name in table.cases]


def _page(name: str, rows: Sequence[ResultRow], table: ResultTable) -> CasePage:
    known = {row.realisation for row in rows if row.candidates}
    drawn = next((one for one in (BASE, *table.realisations) if one in known), None)
    shown = [row for row in rows if row.realisation == drawn and row.candidates]
    description, about = _facts(name, shown)
    drawing = draw_circuit(f"The circuit of {name}, {drawn}", shown, about) if drawn else None
    sentences = {component_name(key): sentence for key, (_, sentence) in about.items()}
    return CasePage(name, description, drawn, drawing, sentences, _data(rows, drawing, table))


def _facts(name: str, rows: Sequence[ResultRow]) -> tuple[str, dict[str, tuple[str, str]]]:
    """The task in a sentence; and for each component its roles and a sentence, if the model is that of the zoo."""
    if name not in zoo.ENTRIES:
        return "", {}
    description = zoo.ENTRIES[name].description
    try:
        case = case_named(name)
        if not rows or rows[0].digest != weights_digest(case.model.parameters):
            return description, {}
        roles = case.roles("head")
    except TracrError:
        return description, {}
    embedding = [roles.pop(key).sentence for key in ("embed", "pos_embed") if key in roles]
    told = [sentence for sentence in embedding if not sentence.endswith("writes nothing.")]
    about = {key: (", ".join(role.roles).replace("_", " "), role.sentence) for key, role in roles.items()}
    return description, {"embed": ("", " ".join(told)), **about}


def _data(rows: Sequence[ResultRow], drawing: CircuitDrawing | None, table: ResultTable) -> dict[str, Any]:
    """The rows with edges as numbers: `edges` are their names, `truths` the different lists of needed edges."""
    edges: dict[str, int] = {}
    truths: dict[tuple[str, ...], int] = {}

    def numbers(names: Sequence[str]) -> list[int]:
        return [edges.setdefault(name, len(edges)) for name in names]

    listed: list[list[Any]] = []
    for row in sorted(rows, key=lambda row: (_place(row, table), row.seed)):
        place = [*_place(row, table), row.seed]
        if row.error:
            listed.append([*place, 0, row.outcome])
            continue
        scores = [_rounded(row.scores[name]) for name in SCORE_NAMES]
        truth = truths.setdefault(row.alone, len(truths))
        listed.append([*place, 2 if row.admitted else 1, scores, truth, numbers(row.missed), numbers(row.extra)])
    needed = [numbers(one) for one in truths]
    return {
        "edges": list(edges),
        "truths": needed,
        "rows": listed,
        "nodes": list(drawing.components) if drawing else [],
    }


def _place(row: ResultRow, table: ResultTable) -> tuple[int, int]:
    return table.realisations.index(row.realisation), table.methods.index(row.method)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
