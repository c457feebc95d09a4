"""A forward pass in numpy with the arithmetic of a short format: numbers are stored in it, sums are float32."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracr
from tracr.craft.formats import Format
from tracr.model.verification import chosen_inputs, differs, ids_of
from tracr.runtime.forward import forward
from tracr.runtime.table_interpreter import Batch, evaluate_batch

Array = Any


def rounded(array: Array, to: Format) -> Array:
    """The nearest numbers of the format; for tf32 those towards 0, of 11 bits."""
    fraction, exponent = np.frexp(np.asarray(array, dtype=np.float64))
    if to.name == "tf32":
        return np.ldexp(np.trunc(np.ldexp(fraction, 11)), exponent - 11).astype(np.float32)
    steps = np.maximum(exponent - to.bits, to.lowest)
    found = np.ldexp(np.rint(np.ldexp(np.asarray(array, dtype=np.float64), -steps)), steps)
    return np.where(np.abs(found) > to.largest, np.copysign(np.inf, found), found).astype(np.float32)


def run_rounded(model: tracr.DesignedModel, ids: Array, to: Format) -> Array:
    """The logits of a pass in float32 in which every weight and every activation is rounded to the format."""
    parameters = model.parameters.map(lambda array: rounded(array, to))
    with np.errstate(all="ignore"):
        return forward(parameters, ids, np, causal=model.options.causal, hook=lambda _, array: rounded(array, to))


def assert_right(model: tracr.DesignedModel, to: Format, budget: int = 200) -> int:
    """The outputs of rounded passes are the program's, padded and unpadded; returns how many inputs were compared."""
    compared = 0
    for codes in chosen_inputs(model, budget, seed=1)[0]:
        length = codes.shape[1]
        evaluation = evaluate_batch(model.program, Batch(codes, np.full(len(codes), length, dtype=np.int32)))
        for padded in (False, True):
            logits = run_rounded(model, ids_of(model, codes, padded), to)
            for output, (_, number) in zip(model.outputs, model.program.outputs, strict=True):
                expected = np.broadcast_to(evaluation.codes[number], codes.shape)
                got = output.codes(logits)[:, 1 : length + 1]
                wrong = differs(output.domain, expected, got).any(axis=1) & ~evaluation.errors
                assert not wrong.any(), codes[int(wrong.argmax())]
        compared += int((~evaluation.errors).sum())
    return compared
