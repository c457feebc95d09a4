"""`Track`: what methods are asked for, the scores of an answer, and the columns of the table of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["EDGES", "EXPLANATIONS", "FEATURES", "PREDICTIONS", "REPLACEMENTS", "TRACKS", "VARIABLES", "Track"]

Columns = Mapping[str, str | list[str]]
SUBJECT: Columns = {
    "track": "string",
    "method": "string",
    "version": "string",
    "settings": "string",
    "case": "string",
    "realisation": "string",
    "dials": "string",
    "seed": "int64",
    "pairs": "int64",
    "pairs_seed": "int64",
    "ablation": "string",
    "granularity": "string",
    "status": "string",
    "error": "string",
    "model_digest": "string",
    "admitted": "bool",
}
COST: Columns = {
    "forward_passes": "int64",
    "backward_passes": "int64",
    "seconds": "float64",
    "device": "string",
}


@dataclass(frozen=True)
class Track:
    """A question to methods; `scores` are columns of the table of results, the first of them orders methods."""

    name: str
    asks: str
    scores: tuple[str, ...]
    columns: Columns = field(repr=False, hash=False)
    """The columns of the table of results, with their types: docs/lab.md."""


EDGES = Track(
    "edges",
    "which edges of the model do the answers need? A number for every edge, or a set of edges",
    ("auroc", "average_precision", "precision_at_size", "exact", "cpr", "cmd"),
    {
        **SUBJECT,
        "metric": "string",
        "auroc": "float64",
        "average_precision": "float64",
        "precision_at_size": "float64",
        "exact": "bool",
        "cpr": "float64",
        "cmd": "float64",
        "missed": ["string"],
        "extra": ["string"],
        "alone": "int64",
        "jointly": "int64",
        "inert": "int64",
        **COST,
        "as_set": "bool",
        "edges": ["string"],
        "truth": ["string"],
        "unread": ["string"],
        "numbers": ["float64"],
    },
)
VARIABLES = Track(
    "variables",
    "where is each variable of the program? A place in the residual stream, and a map of the stream there",
    ("interchange", "control", "decoding", "selectivity", "right_place", "overlap", "angle"),
    {
        **SUBJECT,
        **dict.fromkeys(("interchange", "control", "decoding", "selectivity"), "float64"),
        **dict.fromkeys(("right_place", "overlap", "angle"), "float64"),
        **COST,
        "variables": ["string"],
        "places": ["string"],
        "interchanges": ["float64"],
        "decodings": ["float64"],
        "right_places": ["bool"],
        "overlaps": ["float64"],
        "angles": ["float64"],
        "control_place": "string",
        "control_decoding": "float64",
    },
)
_BESIDE = ("f1", "cosine", "firing", "causal")
FEATURES = Track(
    "features",
    "which features does the stream hold at a place? A dictionary of directions, with the codes of activations",
    (*_BESIDE, "precision", "recall", "absorption", "splitting", "variance"),
    {
        **SUBJECT,
        "place": "string",
        "features": "int64",
        "dimensions": "int64",
        "atoms": "int64",
        "right_answers": "float64",
        **dict.fromkeys((*_BESIDE, "precision", "recall", "absorption", "splitting", "variance"), "float64"),
        **{f"{other}_{name}": "float64" for other in ("control", "null", "ceiling") for name in _BESIDE},
        **COST,
    },
)
EXPLANATIONS = Track(
    "explanations",
    "what does each component do? Its roles",
    ("accuracy", "above_chance", "exact", "chance"),
    {
        **SUBJECT,
        **dict.fromkeys(("accuracy", "above_chance", "exact", "chance"), "float64"),
        "answered": "int64",
        **COST,
        "components": ["string"],
        "by_component": ["float64"],
        "roles": ["string"],
        "role_true": ["int64"],
        "role_answered": ["int64"],
        "role_right": ["int64"],
    },
)
PREDICTIONS = Track(
    "predictions",
    "what is the answer under an intervention? An answer to every question",
    ("where_it_matters", "overall", "set", "patch"),
    {
        **SUBJECT,
        **dict.fromkeys(("where_it_matters", "overall", "set", "patch"), "float64"),
        "questions": "int64",
        "mattering": "int64",
        "answered": "int64",
        **COST,
    },
)
REPLACEMENTS = Track(
    "replacements",
    "which compiled part can take the place of each component? A part of the library",
    ("recovered", "counts", "same"),
    {
        **SUBJECT,
        **dict.fromkeys(("recovered", "counts", "same"), "float64"),
        **COST,
        "components": ["string"],
        "claimed": ["string"],
        "by_component": ["float64"],
    },
)
TRACKS = {track.name: track for track in (EDGES, VARIABLES, FEATURES, EXPLANATIONS, PREDICTIONS, REPLACEMENTS)}
"""All tracks, by name."""
