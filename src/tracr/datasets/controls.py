"""The options of random programs: their inputs and their difficulty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tracr.errors import FormatError
from tracr.ir.options import Options, as_vocabulary
from tracr.rasp import generate
from tracr.rasp.expressions import SOp
from tracr.saving.values_json import decode_value, encode_value
from tracr.values import Value

__all__ = ["Controls", "Seed", "random_program"]

Seed = np.random.Generator | int | Sequence[int]


def random_program(
    seed: Seed,
    *,
    vocab: Iterable[Value] = "abc",
    max_seq_len: int = 5,
    causal: bool = False,
    min_ops: int = 0,
    max_ops: int = 6,
    min_depth: int = 0,
    max_depth: int | None = None,
    min_selectors: int = 0,
    max_selectors: int | None = None,
    composite: bool = False,
) -> SOp:
    """A random, meaningful program that `tracr.datasets.to_python` can print.

    Args:
        seed: an integer or several, or a generator; the same seed gives the same program.
        vocab: the tokens of the inputs: numbers, strings or a mixture.
        max_seq_len: the length of the longest input.
        causal: whether it is meant to be compiled, and evaluated, causally; it then never reads `length`.
        min_ops, max_ops: how many s-ops it has, inputs and constants not counted.
        min_depth, max_depth: the length of its longest chain of s-ops.
        min_selectors, max_selectors: how many `Select`s it has.
        composite: whether boolean selectors may combine selectors over different s-ops, which may take several heads.

    >>> import tracr
    >>> program = tracr.random_program(3, vocab="ab", min_ops=2, max_ops=2, max_selectors=1)
    >>> model = tracr.compile(program, vocab="ab", max_seq_len=5)
    >>> model("abba") == program("abba")
    True
    """
    return Controls(
        as_vocabulary(vocab),
        max_seq_len,
        causal,
        min_ops,
        max_ops,
        min_depth,
        max_depth,
        min_selectors,
        max_selectors,
        composite,
    ).program(seed)


@dataclass(frozen=True)
class Controls:
    """The arguments of `random_program` as a value."""

    vocab: tuple[Value, ...] = ("a", "b", "c")
    max_seq_len: int = 5
    causal: bool = False
    min_ops: int = 0
    max_ops: int = 6
    min_depth: int = 0
    max_depth: int | None = None
    min_selectors: int = 0
    max_selectors: int | None = None
    composite: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocab", as_vocabulary(self.vocab))
        self.options(level=1)  # refuses a vocabulary or a length that no program can be compiled for

    def program(self, seed: Seed) -> SOp:
        """The program of this seed."""
        return generate.random_program(seed, printable=True, **vars(self))

    def options(self, level: int) -> Options:
        """The options to compile such a program with."""
        return Options(self.vocab, self.max_seq_len, self.causal, level)

    def to_json(self) -> dict[str, Any]:
        """Every control under its name."""
        return {**vars(self), "vocab": [encode_value(token) for token in self.vocab]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Controls:
        """The controls that `to_json` wrote."""
        if set(data) != {field.name for field in fields(cls)}:
            raise FormatError(
                f"these are not the controls of random programs: {', '.join(map(str, data))}",
                hint="sample the programs again",
            )
        return cls(**{**data, "vocab": tuple(map(decode_value, data["vocab"]))})
