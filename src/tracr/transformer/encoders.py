"""Encoders from tokens to ids and from outputs to values, with the names of the original Tracr."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracr.craft.bases import BasisDirection
from tracr.errors import InputError, VocabularyError
from tracr.ir.domains import Finite
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output
from tracr.runtime.vocabulary import Vocabulary
from tracr.values import Value

__all__ = ["CategoricalEncoder", "Encoder", "InputEncoder", "NumericalEncoder", "input_encoder", "output_encoder"]


class Encoder(abc.ABC):
    """Encodes values for a transformer, and decodes them."""

    bos_token: Value = None
    pad_token: Value = None

    @abc.abstractmethod
    def encode(self, inputs: Sequence[Any]) -> list[Any]:
        """The encodings of values."""

    @abc.abstractmethod
    def decode(self, encodings: Iterable[Any]) -> list[Any]:
        """The values."""

    @property
    def bos_encoding(self) -> int | None:
        """The encoding of BOS; `None` if there is no BOS."""
        return None

    @property
    def pad_encoding(self) -> int | None:
        """The encoding of PAD; `None` if there is no PAD."""
        return None


@dataclass(frozen=True, eq=False)
class CategoricalEncoder(Encoder):
    """Encodes values as numbers, in the order of their directions.

    >>> encoder = CategoricalEncoder([BasisDirection("x", value) for value in ("a", "b", "bos")], bos_token="bos")
    >>> encoder.encode(["bos", "b"]), encoder.decode([2, 0]), encoder.bos_encoding
    ([2, 1], ['bos', 'a'], 2)
    """

    basis: Sequence[BasisDirection]
    enforce_bos: bool = False
    bos_token: Value = None
    pad_token: Value = None
    max_seq_len: int | None = None

    def __post_init__(self) -> None:
        for name, token in (("BOS", self.bos_token), ("PAD", self.pad_token)):
            if token is not None and token not in self.encoding_map:
                raise VocabularyError(f"the {name} token {token!r} is not one of the values", hint="add its direction")
        if self.enforce_bos and self.bos_token is None:
            raise VocabularyError("inputs cannot be checked for a BOS token without one", hint="pass bos_token")

    @property
    def values(self) -> tuple[Value, ...]:
        """The values, in order."""
        return tuple(direction.value for direction in self.basis)

    @cached_property
    def encoding_map(self) -> dict[Value, int]:
        """From value to number."""
        return {value: number for number, value in enumerate(self.values)}

    @property
    def vocab_size(self) -> int:
        """The number of values."""
        return len(self.encoding_map)

    @property
    def bos_encoding(self) -> int | None:
        """The number of BOS."""
        return None if self.bos_token is None else self.encoding_map[self.bos_token]

    @property
    def pad_encoding(self) -> int | None:
        """The number of PAD."""
        return None if self.pad_token is None else self.encoding_map[self.pad_token]

    @property
    def _max_seq_len(self) -> int | None:  # existing code reads it
        return self.max_seq_len

    def encode(self, inputs: Sequence[Value]) -> list[int]:
        """The numbers of values."""
        if self.enforce_bos and (not len(inputs) or inputs[0] != self.bos_token):
            raise missing_bos(self.bos_token, list(inputs))
        if self.max_seq_len is not None and len(inputs) > self.max_seq_len:
            raise InputError(
                f"the input has {len(inputs)} values, the encoder takes at most {self.max_seq_len}",
                hint="compile with a larger max_seq_len",
            )
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


def missing_bos(bos: Value, tokens: Sequence[Value]) -> InputError:
    """The error for an input that does not start with BOS."""
    found = repr(tokens[0]) if tokens else "nothing"
    return InputError(
        f"the input must start with the BOS token {bos!r}, not with {found}", hint=f"write [{bos!r}, *tokens]"
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class InputEncoder(CategoricalEncoder):
    """Encodes tokens as ids: the vocabulary first, then BOS, PAD. Inputs start with BOS and may end with PAD."""

    vocabulary: Vocabulary

    @property
    def values(self) -> tuple[Value, ...]:
        """The tokens, BOS, PAD."""
        return (*self.vocabulary.tokens, self.vocabulary.bos, self.vocabulary.pad)

    def encode(self, inputs: Sequence[Value]) -> list[int]:
        """The ids of an input: BOS, at most `max_seq_len` tokens, padding."""
        try:
            tokens = list(inputs)
        except TypeError:
            raise InputError(
                f"the input must be a list of tokens, not {inputs!r}", hint="pass a list of tokens"
            ) from None
        if not tokens or tokens[0] != self.bos_token:
            raise missing_bos(self.bos_token, tokens)
        ids, _ = self.vocabulary.encode_one(tokens[1:])
        return [self.vocabulary.bos_id, *ids]


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputEncoder(CategoricalEncoder):
    """Encodes the values of an output. `None` is a value; its direction is called `name:None`."""

    output: Output

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The values, in order."""
        assert isinstance(self.output.domain, Finite)
        return tuple(self.output.domain.values)


@dataclass(frozen=True, eq=False)
class NumericalEncoder(Encoder):
    """Encodes numbers as themselves and `None` as NaN, which no program produces.

    `basis` is the direction that holds the number.
    """

    basis: Sequence[BasisDirection] = ()
    encoding_map: None = None

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
    basis = directions("tokens", (*vocabulary.tokens, bos, pad))
    return InputEncoder(basis, True, bos, pad, vocabulary.longest + 1, vocabulary=vocabulary)


def output_encoder(output: Output, label: str) -> CategoricalEncoder | NumericalEncoder:
    """The encoder of a model's output, with its label in the residual stream."""
    if output.encoding is Encoding.NUMERICAL:
        return NumericalEncoder([BasisDirection(label)])
    assert isinstance(output.domain, Finite)
    return OutputEncoder(directions(label, output.domain.values), output=output)


def directions(label: str, values: Iterable[Value]) -> list[BasisDirection]:
    """One direction per value, named as in the residual stream; the direction of `None` has the text `None`."""
    return [BasisDirection(label, "None" if value is None else value) for value in values]
