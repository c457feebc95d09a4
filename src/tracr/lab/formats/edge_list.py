"""JSON that maps the names of edges to scores or booleans, or lists edges; all names in one naming.

{"embed->blocks.0.attn.0.q": 0.5, "blocks.0.mlp->unembed": 0.25}
{"Resid Start->A0.0.Q": true, "MLP 0->Resid End": false}
["input->a0.h0<q>", "m0->logits"]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from tracr.errors import FormatError
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.formats.found_circuit import FoundCircuit, largest
from tracr.lab.formats.naming import NAMINGS, edge_key, edge_name, has_form, naming_of
from tracr.lab.formats.problems import Problems
from tracr.lab.formats.sizes import CircuitSizes
from tracr.saving.json_reader import Reader

__all__ = ["edge_list_json", "naming_in", "read_edge_list"]

SAMPLE = 100  # names that are looked at to find their naming


def read_edge_list(reader: Reader, sizes: CircuitSizes, problems: Problems) -> FoundCircuit:
    """The circuit of a JSON document; what is wrong with it goes to `problems`."""
    naming = naming_in(name for name, _ in _edges(reader))
    absolute = naming_of(naming).absolute
    scores: dict[EdgeKey, float] = {}
    chosen: set[EdgeKey] = set()
    seen: set[str] = set()
    kinds: set[bool] = set()
    listed = isinstance(reader.data, list)
    for name, value in problems.until_many(_edges(reader)):
        with problems.at(value.where):
            edge, text = edge_key(name, naming, sizes), "->".join(end.strip() for end in name.split("->"))
            if text in seen:
                value.fail("is an edge that occurs twice")
            seen.add(text)
            kinds.add(listed or isinstance(value.data, bool))
            if listed or value.data is True:
                chosen.add(edge)
            elif not isinstance(value.data, bool):
                largest(scores, edge, float(value.number()), absolute)
    if len(kinds) > 1:
        problems.add(f"{reader.where} has numbers for some edges and booleans for others")
    return FoundCircuit(scores, frozenset(chosen) if kinds != {False} else None, absolute)


def _edges(reader: Reader) -> Iterator[tuple[str, Reader]]:
    """The names of the edges, each with the place of its value."""
    if not isinstance(reader.data, list):
        yield from reader.members()
        return
    for place in reader.items():
        ends = place.data if isinstance(place.data, list) else [place.data]
        if not all(isinstance(end, str) for end in ends):
            place.fail("is not the name of an edge")
        yield "->".join(ends), place


def naming_in(names: Iterable[str]) -> str:
    """The naming that most of the first names have; ours if they have none.

    >>> naming_in(["Resid Start->A0.0.Q"])
    'auto-circuit'
    """
    first = list(itertools.islice(names, SAMPLE))
    return max(NAMINGS, key=lambda naming: sum(has_form(name, naming) for name in first))


def edge_list_json(circuit: FoundCircuit, sizes: CircuitSizes, naming: str) -> dict[str, Any]:
    """The JSON document of a circuit: its scores, or if it has none, booleans for the edges in it."""
    if circuit.scores and circuit.chosen is not None:
        raise FormatError("a list of edges has scores or a choice of edges, not both", hint='use format="eap"')
    values: dict[EdgeKey, float | bool] = dict(circuit.scores) or dict.fromkeys(sorted(circuit.chosen or ()), True)
    return {edge_name(edge, naming, sizes): value for edge, value in values.items()}
