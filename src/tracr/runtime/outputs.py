"""Decodes logits: a one-hot output is the value with the largest logit, a number the nearest value of its domain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.domains import Domain, Finite
from tracr.nearness import LAST_SUM, margin
from tracr.rasp.annotations import Encoding
from tracr.values import Value

__all__ = ["Output"]


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a model: its logits, and how to decode them."""

    name: str
    encoding: Encoding
    domain: Domain
    start: int
    stop: int
    error: float = 0.0
    """The largest error of a number."""

    @property
    def labels(self) -> list[str]:
        """The label of each logit."""
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

    @property
    def kept(self) -> tuple[int, int, bool]:
        """The logits needed for decoding: their start and end, and whether the index of the largest is enough."""
        return self.start, self.stop, self.encoding is Encoding.CATEGORICAL

    @property
    def ascending(self) -> tuple[tuple[Value, ...] | None, NDArray[np.float64] | None]:
        """Its values (`None` for an interval); numbers are ascending, the value `None` last, with their midpoints."""
        if not isinstance(self.domain, Finite):
            return None, None
        values = self.domain.values
        if self.encoding is Encoding.CATEGORICAL:
            return values, None
        ordered, middles = self.domain.ascending
        return (*(values[code] for code in ordered), None), np.ascontiguousarray(middles, np.float64)

    def codes(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Codes into the domain for logits [..., d_vocab_out]; numbers (NaN for `None`) if it is an interval."""
        mine = logits[..., self.start : self.stop]
        return self.codes_of(mine.argmax(axis=-1)[..., None] if self.encoding is Encoding.CATEGORICAL else mine)

    def codes_of(self, kept: NDArray[Any]) -> NDArray[Any]:
        """Codes into the domain, from the `kept` part of the logits."""
        if self.encoding is Encoding.CATEGORICAL:
            return kept[..., 0].astype(np.intp, copy=False)
        raw = kept[..., 0].astype(np.float64)
        none = kept[..., 1] > 0.5 if kept.shape[-1] > 1 else np.zeros(raw.shape, dtype=bool)
        if not isinstance(self.domain, Finite):
            return np.where(none, np.nan, raw)
        ordered, middles = self.domain.ascending
        nearest = ordered[np.searchsorted(middles, raw)] if len(ordered) else np.zeros(raw.shape, dtype=np.intp)
        return np.where(none, self.domain.index.get(None, 0), nearest)

    def unrounded(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Values (an object array) for logits [..., d_vocab_out] that may not encode a value of the domain.

        A number within the error bound of a value of the domain becomes this value; any other number is unchanged.
        """
        codes = self.codes(logits)
        values = self.decode(codes)
        if self.encoding is Encoding.CATEGORICAL or not isinstance(self.domain, Finite):
            return values
        raw = logits[..., self.start].astype(np.float64)
        distance = np.abs(raw - self.domain.numbers[codes])
        far = (distance > self.error + margin(raw, LAST_SUM)) & (codes != self.domain.index.get(None, -1))
        values[far] = raw[far]
        return values

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Values (an object array) for codes."""
        if isinstance(self.domain, Finite):
            return np.asarray(self._values[codes])
        decoded = codes.astype(object)
        decoded[np.isnan(codes)] = None
        return decoded
