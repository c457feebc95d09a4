"""From logits to values: one-hot outputs by the largest logit, numbers by the nearest value of their domain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Domain, Finite
from tracr.rasp.annotations import Encoding

__all__ = ["Output"]


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a model: which logits hold it and how to read them."""

    name: str
    encoding: Encoding
    domain: Domain
    start: int
    stop: int

    @property
    def labels(self) -> list[str]:
        """What each logit stands for."""
        if self.encoding is Encoding.NUMERICAL:
            return [self.name, f"{self.name}:None"][: self.stop - self.start]
        assert isinstance(self.domain, Finite)
        return [f"{self.name}:{value}" for value in self.domain.values]

    @cached_property
    def _values(self) -> NDArray[Any]:
        assert isinstance(self.domain, Finite)
        values = np.empty(len(self.domain), dtype=object)
        for code, value in enumerate(self.domain.values):
            values[code] = value
        return values

    def decode(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Values (an object array) for logits [..., d_vocab_out]."""
        mine = logits[..., self.start : self.stop]
        if self.encoding is Encoding.CATEGORICAL:
            decoded: NDArray[Any] = self._values[mine.argmax(axis=-1)]
            return decoded
        raw = mine[..., 0].astype(np.float64)
        if isinstance(self.domain, Finite) and self.domain.ascending[0].size:
            codes, middles = self.domain.ascending
            decoded = self._values[codes[np.searchsorted(middles, raw)]]
        else:
            decoded = raw.astype(object)
        if mine.shape[-1] > 1:
            decoded[mine[..., 1] > 0.5] = None
        return decoded
