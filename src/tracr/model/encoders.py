"""From tokens to ids and from outputs to values, under the names existing code uses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracr.compiler.domains import Finite
from tracr.errors import InputError
from tracr.model.outputs import Output
from tracr.model.vocabulary import Vocabulary
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value

__all__ = ["CategoricalEncoder", "InputEncoder", "NumericalEncoder", "input_encoder", "output_encoder"]


@dataclass(frozen=True)
class CategoricalEncoder:
    """Values and their numbers, in order."""

    values: tuple[Value, ...]
    bos_token: Value = None
    pad_token: Value = None

    @cached_property
    def encoding_map(self) -> dict[Value, int]:
        """From value to number."""
        return {value: number for number, value in enumerate(self.values)}

    @property
    def vocab_size(self) -> int:
        """How many values there are."""
        return len(self.values)

    def encode(self, inputs: Sequence[Value]) -> list[int]:
        """The numbers of values."""
        for value in inputs:
            try:
                known = value in self.encoding_map
            except TypeError:  # unhashable
                known = False
            if not known:
                shown = ", ".join(map(repr, self.values[:12])) + (", ..." if len(self.values) > 12 else "")
                raise InputError(f"{value!r} has no encoding", hint=f"the values are {shown}")
        return [self.encoding_map[value] for value in inputs]

    def decode(self, encodings: Iterable[Any]) -> list[Value]:
        """The values of numbers."""
        numbers = [int(number) for number in encodings]
        for number in numbers:
            if not 0 <= number < len(self.values):
                raise InputError(f"{number} encodes nothing", hint=f"encodings are 0 to {len(self.values) - 1}")
        return [self.values[number] for number in numbers]


@dataclass(frozen=True, kw_only=True)
class InputEncoder(CategoricalEncoder):
    """Tokens and ids: the vocabulary first, then BOS, PAD. Inputs start with BOS and may end with PAD."""

    vocabulary: Vocabulary

    @property
    def bos_encoding(self) -> int:
        """The id of BOS."""
        return self.vocabulary.bos_id

    @property
    def pad_encoding(self) -> int:
        """The id of PAD."""
        return self.vocabulary.pad_id

    def encode(self, inputs: Sequence[Value]) -> list[int]:
        """The ids of a sequence the model takes: BOS, at most `max_seq_len` tokens, padding."""
        try:
            tokens = list(inputs)
        except TypeError:
            raise InputError(f"the input must be a list of tokens, not {inputs!r}") from None
        if not tokens or tokens[0] != self.bos_token:
            found = repr(tokens[0]) if tokens else "nothing"
            raise InputError(
                f"the input must start with the BOS token {self.bos_token!r}, not with {found}",
                hint=f"write [{self.bos_token!r}, *tokens]",
            )
        ids, _ = self.vocabulary.encode_one(tokens[1:])
        return [self.bos_encoding, *ids]


@dataclass(frozen=True)
class NumericalEncoder:
    """Numbers stand for themselves, and NaN, which no program produces, for `None`."""

    encoding_map: None = None
    bos_token: None = None
    pad_token: None = None

    def encode(self, inputs: Iterable[Any]) -> list[float]:
        """`None` becomes NaN."""
        return [math.nan if value is None else value for value in inputs]

    def decode(self, encodings: Iterable[Any]) -> list[float | None]:
        """NaN becomes `None`."""
        numbers = [float(number) for number in encodings]
        return [None if math.isnan(number) else number for number in numbers]


def input_encoder(vocabulary: Vocabulary) -> InputEncoder:
    """The encoder of a model's inputs."""
    bos, pad = vocabulary.bos, vocabulary.pad
    return InputEncoder((*vocabulary.tokens, bos, pad), bos, pad, vocabulary=vocabulary)


def output_encoder(output: Output) -> CategoricalEncoder | NumericalEncoder:
    """The encoder of a model's output."""
    if output.encoding is Encoding.NUMERICAL:
        return NumericalEncoder()
    assert isinstance(output.domain, Finite)
    return CategoricalEncoder(tuple(output.domain.values))
