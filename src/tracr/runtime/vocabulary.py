"""Tokens and ids: the vocabulary first, then BOS and PAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import IdError, InputError
from tracr.runtime.tensors import read_array
from tracr.values import Value, short_repr

__all__ = ["Vocabulary"]

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Vocabulary:
    """Converts tokens to ids and back, and checks a user's inputs."""

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
        except Exception as error:
            raise InputError(
                f"token {short_repr(token)} cannot be looked up: {type(error).__name__}: {error}",
                hint="the token's class needs a __hash__ and an __eq__ that do not raise",
            ) from error

    def inputs(self, given: Any) -> tuple[Sequence[Any], bool]:
        """The given inputs, and whether there is a single input instead of a batch.

        A string is one input, its characters are the tokens. In a list, lists and arrays are inputs. Tuples are inputs
        unless the vocabulary has a tuple. Anything else in a list is a token, strings included. Therefore only the
        types of the items decide whether a list is a batch, not the strings in it.
        """
        listed = _listed(given)
        if isinstance(listed, str):
            return [listed], True
        if getattr(given, "ndim", 1) > 1:  # an array
            return listed, False
        inside = [self._is_input(item) for item in listed]
        if all(inside) and inside:
            return listed, False
        if any(inside):
            raise self._mixed(listed, inside)
        return [listed], True

    def _is_input(self, item: object) -> bool:
        """Whether an item of a list is an input rather than a token."""
        if isinstance(item, tuple):
            return not self._has_tuples
        return isinstance(item, list) or (_is_array(item) and getattr(item, "ndim", 0) > 0)

    @cached_property
    def _has_tuples(self) -> bool:
        return any(isinstance(token, tuple) for token in self.ids)

    @staticmethod
    def _mixed(listed: Sequence[Any], inside: list[bool]) -> InputError:
        """The error for a list of both tokens and inputs."""
        place = inside.index(not inside[0])
        kinds = ("an input", "a token") if inside[0] else ("a token", "an input")
        return InputError(
            f"the list mixes tokens and inputs: {short_repr(listed[0])} at position 0 is {kinds[0]}, "
            f"{short_repr(listed[place])} at position {place} is {kinds[1]}",
            hint="a batch is a list of lists: write a string in it as a list of its characters",
        )

    def encode_one(self, tokens: Sequence[Value]) -> tuple[list[int], int]:
        """The ids of one sequence without BOS, and the number of ids before the padding."""
        plain = self._plain_ids(tokens)
        if plain:
            return plain, len(plain)
        given = [token.item() if _is_array(token) and token.ndim == 0 else token for token in _listed(tokens)]
        ids = [self.id_of(token) for token in given]
        real = len(given)
        while real and ids[real - 1] == self.pad_id:
            real -= 1
        for position, number in enumerate(ids[:real]):
            if number is None or number >= self.bos_id:
                raise self._wrong_token(position, given[position], number)
        self._check_length(real, len(given))
        return [number for number in ids if number is not None], real

    def _plain_ids(self, tokens: Sequence[Value]) -> list[int]:
        """The ids of a usual input, which has only tokens and a valid length; an empty list for any other."""
        if not isinstance(tokens, list | tuple | str) or not self.shortest <= len(tokens) <= self.longest:
            return []
        try:
            ids = [self.ids[token] for token in tokens]
        except Exception:  # `encode_one` finds the reason
            return []
        return ids if ids and max(ids) < self.bos_id else []

    def _check_length(self, real: int, padded: int) -> None:
        """Refuse an input that is too short or too long, with or without its padding."""
        if real and not self.shortest <= real <= self.longest:
            wanted = f"exactly {self.longest}" if self.shortest == self.longest else f"at most {self.longest}"
            raise InputError(
                f"the input has {real} tokens, the model takes {wanted} (BOS not counted)",
                hint="compile with a larger max_seq_len"
                if real > self.longest
                else "the program has a constant of that length; give inputs of that length",
            )
        if padded > self.longest:
            raise InputError(
                f"with its padding the input has {padded} tokens, the model takes {self.longest}",
                hint="leave out the last PAD tokens",
            )

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
        hint = f"the vocabulary is {shown}"
        if isinstance(token, str) and len(token) > 1 and all(map(self.known, token)):
            hint += f"; strings in a list are tokens, for a batch write [list({short_repr(token)}), ...]"
        return InputError(f"token {short_repr(token)} at position {position} is not in the vocabulary", hint=hint)

    def encode(self, sequences: Sequence[Sequence[Value]]) -> tuple[Ids, list[int], list[int]]:
        """Ids [batch, 1 + longest] with BOS in front and PAD behind; and each sequence's given and real length."""
        encoded = [self.encode_one(tokens) for tokens in sequences]
        width = max((len(ids) for ids, _ in encoded), default=0)
        batch = np.full((len(encoded), width + 1), self.pad_id, dtype=np.int64)
        batch[:, 0] = self.bos_id
        for row, (ids, _) in enumerate(encoded):
            batch[row, 1 : len(ids) + 1] = ids
        return batch, [len(ids) for ids, _ in encoded], [real for _, real in encoded]

    def checked_ids(self, ids: Any, positions: int) -> Ids:
        """Ids [batch, position], of any framework, as a numpy array; refused if the model cannot take them."""
        array = read_array("ids", ids, error=IdError)
        if array.ndim != 2 or array.dtype.kind not in "iu":
            raise IdError(
                f"ids must be integers with the axes batch and position, not {array.dtype} of shape {array.shape}",
                hint="model.encode(tokens) gives the ids of an input or of a batch",
            )
        if array.shape[1] > positions:
            raise IdError(
                f"the ids have {array.shape[1]} positions, the model has {positions}, BOS included",
                hint="compile with a larger max_seq_len",
            )
        known = len(self.tokens) + 2
        strange = array[(array < 0) | (array >= known)]
        if strange.size:
            raise IdError(
                f"there is no token with id {strange[0]}",
                hint=f"ids are from 0 to {known - 1}: the tokens, then BOS ({self.bos_id}) and PAD ({self.pad_id})",
            )
        if len(array) and (array.shape[1] == 0 or (array[:, 0] != self.bos_id).any()):
            raise IdError(
                f"every input must begin with BOS, which has id {self.bos_id}",
                hint="model.encode(tokens) puts it there",
            )
        return array.astype(np.int64, copy=False)

    def decode(self, ids: Sequence[int]) -> list[Value]:
        """Tokens for ids."""
        every = (*self.tokens, self.bos, self.pad)
        return [every[number] for number in ids]


def _is_array(thing: Any) -> bool:
    """Whether an object is an array, or a scalar, of numpy or a framework with the same methods."""
    return hasattr(thing, "tolist") and hasattr(thing, "ndim")


def _listed(given: Any) -> Sequence[Any]:
    """The given input or batch as a sequence, which can be read twice."""
    if isinstance(given, list | tuple | str):
        return given
    if _is_array(given) and given.ndim > 0:
        return given.tolist()  # type: ignore[no-any-return]
    try:
        if isinstance(given, set | frozenset | Mapping):
            raise TypeError("it has no order")
        return list(given)
    except TypeError:
        raise InputError(
            f"the input must be a sequence of tokens, not {short_repr(given)}",
            hint="pass a list of tokens, or a string",
        ) from None
