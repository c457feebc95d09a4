"""The values of a part's variables on inputs, as numbers of distinct codes.

The compiled model runs on the inputs. The codes of a variable at the tokens are compared, and each distinct code gets
a number. Two variables with the same `key` have the same values up to renaming, on these inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.graft.part import Part, streams_before

__all__ = ["CodedValues", "ObservedPart", "coded", "observe", "tokens_of", "written_by"]

Array = NDArray[np.float64]
Classes = NDArray[np.int64]
NO_TOKEN = -1
ROUNDED = 5  # decimals: codes that differ by less are the same


@dataclass(frozen=True, eq=False)
class CodedValues:
    """A variable on inputs: `classes` [input, token] numbers its `codes` [class, dimension]; -1 where no token is."""

    classes: Classes
    codes: Array

    @cached_property
    def key(self) -> str:
        """A digest of the classes; they are numbered in the order in which they occur."""
        return hashlib.sha256(np.ascontiguousarray(self.classes).tobytes()).hexdigest()[:24]

    @cached_property
    def key_at_positions(self) -> str:
        """The same, up to renaming at each position apart: equal if, given the position, each tells the other."""
        columns = [_renumbered(column) for column in self.classes.T]
        return hashlib.sha256(np.ascontiguousarray(columns).tobytes()).hexdigest()[:24]

    @cached_property
    def key_at_lengths(self) -> str:
        """The same, up to renaming at each position of inputs of each length.

        A count of keys and the count of all other keys are equal in this sense.
        """
        lengths, found = (self.classes >= 0).sum(axis=1), np.full(self.classes.shape, NO_TOKEN, dtype=np.int64)
        for length in np.unique(lengths):
            mine = lengths == length
            for column in range(length):
                found[mine, column] = _renumbered(self.classes[mine, column])
        return hashlib.sha256(found.tobytes()).hexdigest()[:24]

    @property
    def count(self) -> int:
        """The number of distinct codes."""
        return len(self.codes)

    @cached_property
    def bits(self) -> float:
        """The entropy of the classes over all tokens, in bits."""
        shares = np.bincount(self.classes[self.classes >= 0]) / max(1, (self.classes >= 0).sum())
        shares = shares[shares > 0]
        return float(-(shares * np.log2(shares)).sum())


@dataclass(frozen=True, eq=False)
class ObservedPart:
    """A part, and the values of the variables that it reads and of its output (all that it writes, together)."""

    part: Part
    reads: tuple[CodedValues, ...]
    output: CodedValues

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for two parts that read and write the same values up to renaming, on these inputs."""
        return (self.part.kind, *sorted(one.key for one in self.reads), self.output.key)


def coded(codes: Array, real: NDArray[np.bool_]) -> CodedValues:
    """The distinct codes [input, token, dimension] of real tokens, numbered in the order in which they occur."""
    rows = codes[real].round(ROUNDED) + 0.0
    number = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:  # faster than np.unique(rows, axis=0)
        if (column != column[:1]).any():
            values, place = np.unique(column, return_inverse=True)
            number = np.unique(number * len(values) + place.reshape(-1), return_inverse=True)[1].reshape(-1)
    classes = np.full(real.shape, NO_TOKEN, dtype=np.int64)
    classes[real] = renumbered = _renumbered(number)
    return CodedValues(classes, rows[np.unique(renumbered, return_index=True)[1]])


def _renumbered(classes: Classes) -> Classes:
    """Classes numbered in the order in which they occur; those below 0 stay."""
    kept = classes >= 0
    _, first, number = np.unique(classes[kept], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    found = classes.astype(np.int64)
    found[kept] = rank[number.reshape(-1)]
    return found


def observe(parts: Sequence[Part], inputs: Sequence[Sequence[Any]]) -> list[ObservedPart]:
    """The parts with their values on inputs; each compiled model runs once."""
    real = tokens_of(inputs)
    streams: dict[int, dict[str, Array]] = {}
    found = []
    for part in parts:
        if id(part.model) not in streams:
            streams = {id(part.model): _streams(part, inputs)}  # the parts of a model follow each other
        found.append(_observed(part, streams[id(part.model)], real))
    return found


def _streams(part: Part, inputs: Sequence[Sequence[Any]]) -> dict[str, Array]:
    try:
        return streams_before(part.model, inputs)
    except InputError as error:
        raise InputError(
            f"the program of the part {part.title} does not take the inputs: {error.diagnostic.what}",
            hint="compile it for the tokens and the length of the data, as graft.library(vocab, max_seq_len) does",
        ) from error


def tokens_of(inputs: Sequence[Sequence[Any]], longest: int | None = None) -> NDArray[np.bool_]:
    """Which places [input, token] hold a token; by default there are as many places as the longest input has."""
    lengths = np.array([len(one) for one in inputs], dtype=np.int64)
    return np.asarray(np.arange(lengths.max(initial=0) if longest is None else longest) < lengths[:, None])


def _observed(part: Part, streams: dict[str, Array], real: NDArray[np.bool_]) -> ObservedPart:
    stream = streams[f"blocks.{part.layer}.hook_resid_{'pre' if part.kind == 'head' else 'mid'}"]
    reads = tuple(coded(stream[:, 1:, list(one.slots)], real) for one in part.inputs)
    return ObservedPart(part, reads, coded(written_by(part, streams)[:, 1:], real))


def written_by(part: Part, streams: Mapping[str, Array]) -> Array:
    """What a part writes [input, position, dimension], given what its heads and neurons compute."""
    block, weights = f"blocks.{part.layer}", part.weights
    if part.kind == "head":
        return streams[f"{block}.attn.hook_z"][:, :, int(part.name.split(".")[3])] @ weights.matrices["O"]
    return streams[f"{block}.mlp.hook_post"][..., part.span] @ weights.matrices["out"]
