"""The metric of a pair: how far the logits favour the clean answer over the corrupted one, as weights on the logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.lab.sampling import InputPair
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output

__all__ = ["answer_weights"]


def answer_weights(pairs: Sequence[InputPair], output: Output) -> NDArray[np.float32]:
    """Weights [pair, position, logit], BOS being position 0: the metric of a pair is the sum of weights times logits.

    Only positions where the answers differ count, each 1/n of n. There the metric of a one-hot output is the logit of
    the clean answer minus that of the corrupted one. The metric of a number is the number, with the sign that makes it
    larger for the clean answer. Pairs whose answers are equal have weights 0.
    """
    length = 1 + max((len(pair.clean) for pair in pairs), default=0)
    weights = np.zeros((len(pairs), length, output.stop), dtype=np.float32)
    for row, pair in zip(weights, pairs, strict=True):
        positions = pair.positions
        for position in positions:
            clean, corrupted = pair.clean_answer[position], pair.corrupted_answer[position]
            if output.encoding is Encoding.NUMERICAL:
                row[position + 1, output.start] = _sign(clean, corrupted) / len(positions)
            else:
                assert isinstance(output.domain, Finite)
                row[position + 1, output.start + output.domain.index[clean]] += 1 / len(positions)
                row[position + 1, output.start + output.domain.index[corrupted]] -= 1 / len(positions)
    return weights


def _sign(clean: object, corrupted: object) -> float:
    if not isinstance(clean, int | float) or not isinstance(corrupted, int | float):
        raise TracrError(
            "the metric of an output of numbers is not defined where the answer is None",
            hint="give the program a default that is a number",
        )
    return 1.0 if clean > corrupted else -1.0
