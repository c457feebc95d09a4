"""Rows of a run that was never made: random numbers for the edges of small circuits, scored by `score_edges`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracr.ground_truth.edge_keys import all_later, as_text
from tracr.ground_truth.scores import score_edges
from tracr.lab.rows import COLUMNS

Settings = dict[str, Any]
METHODS: tuple[tuple[str, Settings, float], ...] = (
    ("exact", {}, 4.0),
    ("eap", {}, 1.5),
    ("eap-ig-inputs", {"steps": 10}, 2.5),
    ("random", {}, 0.0),
)
"""Names, settings, and how much larger the numbers of needed edges are."""
REALISATIONS: tuple[tuple[str, Settings], ...] = (
    ("compiled", {}),
    ("compiled", {"gap": 16}),
    ("rotated", {}),
    ("decoys", {}),
)
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" & 'quoted'",
    "javascript:alert(1)//&lt;",
    "a\nb\tc\u202e\u2028é☃",
)
"""Names that must be shown as they are."""


def architecture(layers: int = 2, heads: int = 2) -> tuple[tuple[str, str], ...]:
    """All edges of a model with so many layers and heads."""
    parts = [f"blocks.{layer}.attn.{head}" for layer in range(layers) for head in range(heads)]
    parts += [f"blocks.{layer}.mlp" for layer in range(layers)]
    readers = [name for part in parts for name in ([part] if "mlp" in part else [f"{part}.{into}" for into in "qkv"])]
    return all_later(["embed", *sorted(parts)], [*readers, "unembed"])


def result_rows(
    cases: Sequence[str] = ("hist", "count", "dyck1", "sort"),
    seeds: Sequence[int] = (0, 1, 2),
    methods: Sequence[tuple[str, Settings, float]] = METHODS,
    realisations: Sequence[tuple[str, Settings]] = REALISATIONS,
    draw: int = 0,
) -> list[dict[str, Any]]:
    """A row for each method, case, realisation and seed; some scores are undefined."""
    rng = np.random.default_rng(draw)
    rows = []
    for number, case in enumerate(cases):
        candidates = architecture(1 + number % 3)
        kinds = {key: ("alone", "inert", "inert", "inert", "jointly")[(place + number) % 5]
                 for place, key in enumerate(candidates)}  # fmt: skip
        needed = [key for key, kind in kinds.items() if kind == "alone"]
        inert = [key for key, kind in kinds.items() if kind == "inert"]
        for realisation, dials in realisations:
            for seed in seeds:
                for method, settings, better in methods:
                    found = {
                        key: round(float(better * (kind == "alone") + rng.normal()), 1) for key, kind in kinds.items()
                    }
                    scores = score_edges(found, needed, inert, as_set=False)
                    cpr = None if rng.random() < 0.05 else float((scores.auroc or 0) + 0.1 * rng.normal())
                    rows.append(
                        {
                            **dict.fromkeys(COLUMNS),
                            **{"track": "edges", "pairs": 64, "ablation": "resample", "granularity": "qkv"},
                            **{"method": method, "version": "1", "settings": json.dumps(settings), "case": case},
                            **{"realisation": realisation, "dials": json.dumps(dials), "seed": seed},
                            **{"pairs_seed": seed, "status": "done", "error": "", "model_digest": "", "admitted": True},
                            **{"auroc": scores.auroc, "average_precision": scores.average_precision},
                            **{"precision_at_size": scores.precision_at_size, "exact": scores.exact},
                            **{"cpr": cpr, "cmd": None if cpr is None else abs(1 - cpr)},
                            **{"missed": list(map(as_text, scores.missed)), "extra": list(map(as_text, scores.extra))},
                            **{"alone": len(needed), "inert": len(inert), "metric": "logits", "device": "cpu"},
                            **{"jointly": len(candidates) - len(needed) - len(inert), "as_set": False},
                            **{"forward_passes": 10, "backward_passes": 1, "seconds": 0.5},
                            "edges": list(map(as_text, candidates)),
                            "truth": list(kinds.values()),
                            "numbers": [found[key] for key in candidates],
                            "unread": list(map(as_text, inert[:4])) if realisation == "decoys" else [],
                        }
                    )
    return rows


def failed(row: dict[str, Any], error: str) -> dict[str, Any]:
    """The row of a run that raised an error."""
    kept = ("track", "pairs", "ablation", "granularity", "method", "version", "settings", "case", "realisation",
            "dials", "seed", "pairs_seed", "device")  # fmt: skip
    return {**dict.fromkeys(COLUMNS), **{name: row[name] for name in kept}, "status": "failed", "error": error}


def brute_force(row: dict[str, Any]) -> tuple[float, float, bool]:
    """AUROC and average precision from the columns of a row, by their definitions; whether the top is the truth."""
    labelled = [
        (float("-inf") if number is None else number, kind)
        for number, kind in zip(row["numbers"], row["truth"], strict=True)
        if kind != "jointly"
    ]
    high = [number for number, kind in labelled if kind == "alone"]
    low = [number for number, kind in labelled if kind == "inert"]
    wins = sum((x > y) + 0.5 * (x == y) for x in high for y in low)
    precision = total = 0.0
    recall_before = 0.0
    for threshold in sorted({*high, *low}, reverse=True):
        hits = sum(x >= threshold for x in high)
        precision = hits / (hits + sum(x >= threshold for x in low))
        total += (hits / len(high) - recall_before) * precision
        recall_before = hits / len(high)
    return wins / (len(high) * len(low)), total, min(high) > max(low)
