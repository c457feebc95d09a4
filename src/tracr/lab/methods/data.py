"""What a method gets: pairs of inputs, and a metric of the logits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ground_truth.ablations import without_near_ties
from tracr.ground_truth.input_pairs import TokenPair, read_pairs
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output
from tracr.runtime.vocabulary import Vocabulary

__all__ = ["TOLERANCE", "MethodData", "answers_differ"]

Array = NDArray[Any]
TOLERANCE = 0.02  # of the range of an output: numbers that differ by less are the same answer, as for twins


@dataclass(frozen=True, eq=False)
class MethodData:
    """Clean and corrupted inputs, and the metric of a pair.

    `weights` [pair, position, logit] (BOS is position 0) define a linear metric: the sum of weights times logits.
    Without weights the metric is 1 if an answer at some token differs from that to the clean input, else 0.
    """

    clean: tuple[Sequence[Any], ...] = field(repr=False)
    corrupted: tuple[Sequence[Any], ...] = field(repr=False)
    weights: Array | None = field(default=None, repr=False)

    @staticmethod
    def of(pairs: Iterable[TokenPair], weights: Array | None = None) -> MethodData:
        """The data of (clean, corrupted) pairs."""
        clean, corrupted = read_pairs(pairs)
        return MethodData(clean, corrupted, weights)

    def ids(self, vocabulary: Vocabulary) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The ids of clean and corrupted inputs as one padded batch, and which positions of it hold a token."""
        ids, _, lengths = vocabulary.encode([*self.clean, *self.corrupted])
        places, count = np.arange(ids.shape[1]), len(self.clean)
        token = (places >= 1) & (places <= np.array(lengths[:count])[:, None])
        return ids[:count], ids[count:], token

    def change(self, outputs: Sequence[Output], token: NDArray[np.bool_], clean: Array, logits: Array) -> Array:
        """How far the metric is from that of the clean logits: [..., pair] for logits [..., pair, position, logit]."""
        if self.weights is None:
            return np.asarray((answers_differ(outputs, clean, logits) & token).any(axis=-1), dtype=np.float64)
        moved = (logits - clean)[..., : self.weights.shape[-1]].astype(np.float64)
        return np.asarray(np.abs((moved * self.weights).sum(axis=(-1, -2))))


def answers_differ(outputs: Sequence[Output], first: Array, second: Array) -> NDArray[np.bool_]:
    """Whether logits give different answers at each position: other values, or numbers beyond the tolerance."""
    first, second = without_near_ties(outputs, first), without_near_ties(outputs, second)
    found = np.zeros(np.broadcast_shapes(first.shape, second.shape)[:-1], dtype=bool)
    for output in outputs:
        one, other = (logits[..., output.start : output.stop] for logits in (first, second))
        if output.encoding is Encoding.CATEGORICAL:
            found |= one.argmax(axis=-1) != other.argmax(axis=-1)
            continue
        low, high = output.domain.ends
        moved = np.abs(one[..., 0] - other[..., 0]) > TOLERANCE * max(high - low, 1e-6)
        if output.stop - output.start > 1:
            none, other_none = one[..., 1] > 0.5, other[..., 1] > 0.5
            moved = np.where(none | other_none, none != other_none, moved)
        found |= moved
    return found
