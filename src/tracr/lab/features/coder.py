"""A trained sparse coder (an SAE or a transcoder) in numpy: how its codes are computed.

z = (x - b_in) W_enc + b_enc
l1        code = relu(z)
topk      code = relu(z) where z is among the k largest of its token, else 0
jumprelu  code = z where z > threshold, else 0
output    code W_dec + b_dec
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.features.found import FoundDictionary

__all__ = ["KINDS", "SparseCoder"]

Array = NDArray[Any]
KINDS = ("l1", "topk", "jumprelu")


@dataclass(frozen=True, eq=False)
class SparseCoder:
    """The weights of a coder, for activations in their own units.

    Args:
        kind: one of `KINDS`.
        weights: W_enc [input, atom], b_enc, W_dec [atom, dimension], b_dec, b_in, threshold.
        sparsity: the number k of "topk"; otherwise the weight of the penalty, which codes do not depend on.
    """

    kind: str
    weights: dict[str, Array] = field(repr=False)
    sparsity: float

    def codes(self, activations: Array) -> Array:
        """The codes [token, atom]."""
        own = self.weights
        before = (activations - own["b_in"]) @ own["W_enc"] + own["b_enc"]
        if self.kind == "jumprelu":
            return np.asarray(np.where(before > own["threshold"], before, 0.0))
        positive = np.maximum(before, 0)
        if self.kind == "topk" and self.sparsity < positive.shape[1]:
            least = np.partition(positive, -int(self.sparsity), axis=1)[:, -int(self.sparsity), None]
            positive = np.where(positive >= least, positive, 0.0)
        return np.asarray(positive)

    def found(self, reads_inputs: bool = False) -> FoundDictionary:
        """The coder as a dictionary."""
        return FoundDictionary(self.weights["W_dec"], self.codes, self.weights["b_dec"], reads_inputs)
