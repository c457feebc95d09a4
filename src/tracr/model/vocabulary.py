"""Tokens and ids: the vocabulary first, then BOS and PAD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.rasp.values import Value

__all__ = ["Vocabulary"]

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Vocabulary:
    """From tokens to ids and back; checks what a user gives before the model sees it."""

    tokens: tuple[Value, ...]
    bos: Value
    pad: Value
    shortest: int
    longest: int

    @cached_property
    def ids(self) -> dict[Value, int]:
        """From token to id, BOS and PAD included."""
        return {token: number for number, token in enumerate((*self.tokens, self.bos, self.pad))}

    @property
    def bos_id(self) -> int:
        """The id of BOS."""
        return len(self.tokens)

    @property
    def pad_id(self) -> int:
        """The id of PAD."""
        return len(self.tokens) + 1

    def known(self, token: object) -> bool:
        """Whether `token` is in the vocabulary (or is PAD)."""
        return self.id_of(token) not in (None, self.bos_id)

    def id_of(self, token: object) -> int | None:
        """The id of a token, of BOS or of PAD; `None` for anything else."""
        try:
            return self.ids.get(token)
        except TypeError:  # unhashable
            return None

    def is_batch(self, tokens: Sequence[Any]) -> bool:
        """Whether `tokens` is a list of sequences rather than of tokens."""
        nested = isinstance(tokens, list | tuple) or (isinstance(tokens, np.ndarray) and tokens.ndim > 0)
        return nested and len(tokens) > 0 and all(map(self._is_sequence, tokens))

    def _is_sequence(self, item: Any) -> bool:
        """Whether an item of the input is itself an input: a list, or a string made of tokens, and not a token."""
        if isinstance(item, str):
            return not self.known(item) and all(map(self.known, item))
        return isinstance(item, list | np.ndarray) or (isinstance(item, tuple) and not self.known(item))

    def encode_one(self, tokens: Sequence[Value]) -> tuple[list[int], int]:
        """The ids of one sequence without BOS, and how many of them come before the padding."""
        if isinstance(tokens, list | tuple | str) and self.shortest <= len(tokens) <= self.longest:
            try:
                plain = [self.ids[token] for token in tokens]
            except (KeyError, TypeError):  # what is wrong is found below
                plain = []
            if plain and max(plain) < self.bos_id:
                return plain, len(plain)
        try:
            if isinstance(tokens, set | frozenset | dict):
                raise TypeError("it has no order")
            given = [token.item() if isinstance(token, np.generic) else token for token in tokens]
        except TypeError:
            raise InputError(
                f"the input must be a sequence of tokens, not {tokens!r}", hint="pass a list of tokens, or a string"
            ) from None
        ids = [self.id_of(token) for token in given]
        real = len(given)
        while real and ids[real - 1] == self.pad_id:
            real -= 1
        for position, number in enumerate(ids[:real]):
            if number is None or number >= self.bos_id:
                raise self._wrong_token(position, given[position], number)
        if real and not self.shortest <= real <= self.longest:
            wanted = f"exactly {self.longest}" if self.shortest == self.longest else f"at most {self.longest}"
            raise InputError(
                f"the input has {real} tokens, the model takes {wanted} (BOS not counted)",
                hint="compile with a larger max_seq_len" if real > self.longest else "",
            )
        if len(given) > self.longest:
            raise InputError(f"with its padding the input has {len(given)} tokens, the model takes {self.longest}")
        return [number for number in ids if number is not None], real

    def _wrong_token(self, position: int, token: object, number: int | None) -> InputError:
        if number == self.bos_id:
            return InputError(
                f"the input has the BOS token {token!r} at position {position}", hint="leave it out: the model adds it"
            )
        if number == self.pad_id:
            return InputError(
                f"the input has the PAD token {token!r} at position {position}, before the end",
                hint="padding goes to the right of all tokens",
            )
        shown = ", ".join(map(repr, self.tokens[:12])) + (", ..." if len(self.tokens) > 12 else "")
        return InputError(
            f"token {token!r} at position {position} is not in the vocabulary", hint=f"the vocabulary is {shown}"
        )

    def encode(self, sequences: Sequence[Sequence[Value]]) -> tuple[Ids, list[int], list[int]]:
        """Ids [batch, 1 + longest] with BOS in front and PAD behind; and each sequence's given and real length."""
        encoded = [self.encode_one(tokens) for tokens in sequences]
        width = max((len(ids) for ids, _ in encoded), default=0)
        batch = np.full((len(encoded), width + 1), self.pad_id, dtype=np.int64)
        batch[:, 0] = self.bos_id
        for row, (ids, _) in enumerate(encoded):
            batch[row, 1 : len(ids) + 1] = ids
        return batch, [len(ids) for ids, _ in encoded], [real for _, real in encoded]

    def decode(self, ids: Sequence[int]) -> list[Value]:
        """Tokens for ids."""
        every = (*self.tokens, self.bos, self.pad)
        return [every[number] for number in ids]
