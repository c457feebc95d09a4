"""Learned models that were not trained: random weights in the dimensions of each part."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracr
from tests.agreement import all_inputs
from tracr.model.verification import Verification
from tracr.natural.learned.assembly import assembled, spans_of
from tracr.natural.learned.codes import parts_of, places_of, streams_of
from tracr.natural.learned.directions import reading_spaces, rotated_by, superposed_in
from tracr.natural.learned.model import LearnedModel, LearnedPart

D_HEAD, NEURONS = 8, 12


def unlearned(
    model: tracr.CompiledModel, seed: int = 0, width: int | None = None, *, superposed: bool = False
) -> LearnedModel:
    """A learned model with random weights, biases included; with `width` it is rotated, or superposed.

    A superposed one reads what the compiled parts read, and writes in the span of what they write.
    """
    rng = np.random.default_rng(seed)
    inputs = [tokens for tokens in all_inputs(model.options.vocab, model.options.max_seq_len) if tokens]
    codes = {part.where.name: part for part in parts_of(model, streams_of(model, model.encode(inputs)))}
    weights: dict[str, dict[str, Any]] = {}
    for where in places_of(model):
        size = D_HEAD if where.span is None else NEURONS + where.place
        own = {name: rng.normal(0, 0.5, (len(slots), size)) for name, slots in where.reads.items()}
        own |= {f"b_{name}": rng.normal(0, 0.5, size) for name in where.reads}
        own |= {"out": rng.normal(0, 0.5, (size, len(where.writes))), "b_out": rng.normal(0, 0.5, len(where.writes))}
        if superposed:
            own |= {name: space @ own[name] for name, space in reading_spaces(model, where).items()}
            rows = codes[where.name].wanted.reshape(-1, len(where.writes))
            within = np.linalg.pinv(rows) @ rows
            own |= {"out": own["out"] @ within, "b_out": own["b_out"] @ within}
        weights[where.name] = own
    spans = spans_of(model, {name: len(own["out"]) for name, own in weights.items()})
    parts = tuple(LearnedPart(where.name, where.variables, 0.5, 0.75, 0.125, 0.25) for where in places_of(model))
    turned = None
    if superposed:
        turned = superposed_in(model, list(codes.values()), width, seed)
    elif width is not None:
        turned = rotated_by(model.d_model, width, seed)
    verified = Verification(3, False, 1, None, own_weights=False, assumptions=("none",), interpreted=2, apart=1)
    made = assembled(model, weights, spans)
    return LearnedModel(model, made, parts, spans, verified, 0.02, seed, turned, superposed)
