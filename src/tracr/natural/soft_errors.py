"""Measures how far the codes of a softened model are off, and whether its answers are right by a margin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.ir.domains import Finite
from tracr.ir.program import Program
from tracr.model.designed import DesignedModel
from tracr.model.variants.readback import held_and_wanted
from tracr.model.verification import differs, ids_of
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch

__all__ = ["Expected", "expected_of", "measured_errors", "unit_of", "wrong_rows"]

MARGIN = 0.25
"""The logit of the right value is this much above the others, which have 0 where it has 1."""
ROWS = 2048  # inputs that are run together

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Expected:
    """Inputs of one length on which the program is defined, with the values of all its variables."""

    codes: Array
    evaluation: Evaluation = field(repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    def ids(self, model: DesignedModel) -> Array:
        """The token ids of the inputs, without PAD."""
        return ids_of(model, self.codes, False)


def expected_of(program: Program, batches: Iterable[Array]) -> list[Expected]:
    """The inputs of each batch on which the program is defined, in parts that are run together."""
    found = []
    for codes in batches:
        for part in np.split(codes, range(ROWS, len(codes), ROWS)):
            evaluation = _evaluated(program, part)
            if evaluation.errors.any():
                part = part[~evaluation.errors]
                evaluation = _evaluated(program, part)
            if len(part):
                found.append(Expected(part, evaluation))
    return found


def _evaluated(program: Program, codes: Array) -> Evaluation:
    return evaluate_batch(program, Batch(codes, np.full(len(codes), codes.shape[1], dtype=np.int32)))


def wrong_rows(model: DesignedModel, expected: Expected, error: float) -> NDArray[np.bool_]:
    """Which inputs have a wrong or narrow answer, or a variable whose code or number is off by more than allowed."""
    ids, shape = expected.ids(model), expected.codes.shape
    logits = model.logits(ids)[:, 1:]
    wrong = np.zeros(len(ids), dtype=bool)
    for output, (_, number) in zip(model.outputs, model.program.outputs, strict=True):
        codes = np.broadcast_to(expected.evaluation.codes[number], shape)
        wrong |= _narrow(output, logits, codes, error).any(axis=1)
    if wrong.all():
        return wrong
    for variable, _, held, wanted in held_and_wanted(model, expected.evaluation, ids):
        off = np.abs(held - wanted).max(axis=-1, initial=0.0)
        wrong |= (off > error * unit_of(model.program, variable)).any(axis=1)
    return wrong


def _narrow(output: Output, logits: Array, codes: Array, error: float) -> NDArray[np.bool_]:
    """Where an answer is wrong, or right by less than the margin; [input, position]."""
    off = differs(output.domain, codes, output.codes(logits))
    if output.encoding is Encoding.CATEGORICAL:
        mine = logits[..., output.start : output.stop].copy()
        right = np.take_along_axis(mine, codes[..., None], axis=-1)[..., 0]
        np.put_along_axis(mine, codes[..., None], -np.inf, axis=-1)
        return np.asarray(off | (right - mine.max(axis=-1) < MARGIN))
    if isinstance(output.domain, Finite):
        numbers, none = output.domain.numbers[codes], codes == output.domain.index.get(None, -1)
        far = np.abs(logits[..., output.start] - numbers) > max(error * output.domain.closest, output.error)
        return np.asarray(off | (far & ~none))
    return off


def unit_of(program: Program, variable: Variable) -> float:
    """The distance between the codes of two values of a variable: 1, or that of its two nearest numbers."""
    if variable in (ONE, BOS, PAD) or not variable.numerical or variable.node is None:
        return 1.0
    domain = program.sops[variable.node].domain
    return domain.closest if isinstance(domain, Finite) else np.inf


def measured_errors(model: DesignedModel, inputs: Iterable[Expected]) -> dict[str, float]:
    """For each variable with directions, how far a coordinate of its code is off at most, on these inputs."""
    found: dict[str, float] = {}
    for expected in inputs:
        for variable, _, held, wanted in held_and_wanted(model, expected.evaluation, expected.ids(model)):
            if variable not in (ONE, BOS, PAD):
                off = float(np.abs(held - wanted).max(initial=0.0))
                found[variable.label] = max(found.get(variable.label, 0.0), off)
    return found
