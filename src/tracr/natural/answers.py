"""The answers of a model, in JAX: a code for each output, and a number if the output is numerical.

Two answers are the same if their codes are equal and their numbers differ by at most the tolerance, a fixed part of
the range of the output's numbers. The loss is cross-entropy for codes and squared error for numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output

__all__ = ["PART_OF_RANGE", "Answer", "Answers"]

Array = Any  # of JAX
PART_OF_RANGE = 0.02  # the tolerance, as a part of the range of an output's numbers
UNIT = 5.0  # tolerances: an error of this size costs 1
FLAG = 0.5  # an error of the flag for None that costs 1


class Answer(NamedTuple):
    """Codes and numbers [batch, position, output]; a number's code says whether it is None."""

    codes: Array
    numbers: Array


@dataclass(frozen=True, eq=False)
class Answers:
    """How the logits of a model, and of its twin, hold the outputs."""

    outputs: Sequence[Output]

    def tolerance(self, output: Output) -> float:
        """The largest difference of numbers that count as the same; 0 for an output that is not a number."""
        if output.encoding is Encoding.CATEGORICAL:
            return 0.0
        low, high = output.domain.ends
        return PART_OF_RANGE * max(high - low, 1e-6)

    def read(self, logits: Array) -> Answer:
        """The answers that logits [batch, position, d_vocab_out] hold."""
        codes, numbers = [], []
        for output in self.outputs:
            mine = logits[..., output.start : output.stop]
            if output.encoding is Encoding.CATEGORICAL:
                codes.append(mine.argmax(axis=-1))
                numbers.append(jnp.zeros(mine.shape[:-1]))
            else:
                none = mine[..., 1] > 0.5 if mine.shape[-1] > 1 else jnp.zeros(mine.shape[:-1], dtype=bool)
                codes.append(none.astype(int))
                numbers.append(jnp.where(none, 0.0, mine[..., 0]))
        return Answer(jnp.stack(codes, axis=-1), jnp.stack(numbers, axis=-1))

    def apart(self, one: Answer, other: Answer) -> Array:
        """The distance between answers [batch, position], in tolerances: infinite where codes differ."""
        allowed = jnp.array([self.tolerance(output) or 1.0 for output in self.outputs])
        distance = jnp.abs(one.numbers - other.numbers) / allowed
        return jnp.where(one.codes == other.codes, distance, jnp.inf).max(axis=-1)

    def loss(self, logits: Array, wanted: Answer) -> Array:
        """The loss of the logits, [batch, position]."""
        total = jnp.zeros(logits.shape[:-1])
        for place, output in enumerate(self.outputs):
            mine = logits[..., output.start : output.stop]
            code, number = wanted.codes[..., place], wanted.numbers[..., place]
            if output.encoding is Encoding.CATEGORICAL:
                total -= jnp.take_along_axis(jax.nn.log_softmax(mine), code[..., None], axis=-1)[..., 0]
                continue
            unit = UNIT * self.tolerance(output)
            total += jnp.where(code == 0, ((mine[..., 0] - number) / unit) ** 2, 0.0)
            if mine.shape[-1] > 1:
                total += ((mine[..., 1] - code) / FLAG) ** 2
        return total
