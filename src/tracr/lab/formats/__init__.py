"""Circuits in the formats of other tools (docs/lab-formats.md).

naming.py          the names of writers and readers in four formats
found_circuit.py   `FoundCircuit`: edges with scores, and the edges chosen
sizes.py           `CircuitSizes`: the layers and heads that names are checked against
eap_json.py        the JSON of EAP and MIB circuits
edge_list.py       JSON that maps edges to scores
prune_scores.py    the arrays of auto-circuit
graphs.py          networkx
files.py           `read` and `write`: files of the two kinds of JSON
submissions.py     `check` and `score`: a file against the truth of a subject
"""

from __future__ import annotations

from tracr.lab.formats.files import read, write
from tracr.lab.formats.found_circuit import FoundCircuit
from tracr.lab.formats.graphs import from_networkx, to_networkx
from tracr.lab.formats.naming import NAMINGS, edge_key, edge_name
from tracr.lab.formats.prune_scores import from_prune_scores, to_prune_scores
from tracr.lab.formats.sizes import CircuitSizes, sizes_of
from tracr.lab.formats.submissions import CheckedSubmission, ScoredSubmission, check, score

__all__ = [
    "NAMINGS",
    "CheckedSubmission",
    "CircuitSizes",
    "FoundCircuit",
    "ScoredSubmission",
    "check",
    "edge_key",
    "edge_name",
    "from_networkx",
    "from_prune_scores",
    "read",
    "score",
    "sizes_of",
    "to_networkx",
    "to_prune_scores",
    "write",
]
