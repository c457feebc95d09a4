"""Learned models that were not trained: random weights in the dimensions of each part."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracr
from tracr.model.verification import Verification
from tracr.natural.learned.assembly import assembled, spans_of
from tracr.natural.learned.codes import places_of
from tracr.natural.learned.model import LearnedModel, LearnedPart

D_HEAD, NEURONS = 8, 12


def unlearned(model: tracr.CompiledModel, seed: int = 0, width: int | None = None) -> LearnedModel:
    """A learned model with random weights, biases included; with `width` it is rotated."""
    rng = np.random.default_rng(seed)
    weights: dict[str, dict[str, Any]] = {}
    for where in places_of(model):
        size = D_HEAD if where.span is None else NEURONS + where.place
        own = {name: rng.normal(0, 0.5, (len(slots), size)) for name, slots in where.reads.items()}
        own |= {f"b_{name}": rng.normal(0, 0.5, size) for name in where.reads}
        own |= {"out": rng.normal(0, 0.5, (size, len(where.writes))), "b_out": rng.normal(0, 0.5, len(where.writes))}
        weights[where.name] = own
    spans = spans_of(model, {name: len(own["out"]) for name, own in weights.items()})
    parts = tuple(LearnedPart(where.name, where.variables, 0.5, 0.75, 0.125, 0.25) for where in places_of(model))
    rotation = None
    if width is not None:
        rotation = np.linalg.qr(rng.normal(size=(width, width)))[0][: model.d_model].astype(np.float32)
    verified = Verification(3, False, 1, None, own_weights=False, assumptions=("none",), interpreted=2, apart=1)
    return LearnedModel(model, assembled(model, weights, spans), parts, spans, verified, 0.02, seed, rotation)
