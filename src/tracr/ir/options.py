"""`Options`: everything that a compilation depends on, except the program. Validated and frozen."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Sized
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tracr.arguments import flag, number, whole
from tracr.craft.formats import STORED, Format
from tracr.craft.numerics import GAP, leak
from tracr.errors import CompileError, TracrError, VocabularyError
from tracr.ir.budget import DEFAULT, VALUE, Budget, Growing, as_bytes
from tracr.ir.softness import Softness
from tracr.ir.switches import Switches, SwitchName, enabled
from tracr.values import Value, as_value, short_repr, sort_values

__all__ = ["LEVELS", "MOST_ASTRAY", "Options", "as_vocabulary"]

LEVELS = (0, 1, 2)
MOST_ASTRAY = 0.05  # the most attention that may leak; each construction then decides how much is harmless


def as_vocabulary(vocab: Iterable[Value], max_memory: object = DEFAULT) -> tuple[Value, ...]:
    """The distinct tokens: a list keeps its order, a set is sorted, a string is its characters.

    A vocabulary that is infinite or too large for the memory is refused before all its tokens are listed.

    >>> as_vocabulary({"b", "a"}), as_vocabulary("abca")
    (('a', 'b'), ('a', 'b', 'c'))
    """
    budget = Budget(as_bytes(max_memory))
    with suppress(OverflowError):  # a range may be longer than `len` can say
        size = len(vocab) if isinstance(vocab, Sized) else 0
        budget.need(VALUE * size, f"a vocabulary of {size:,} tokens")
    try:
        if isinstance(vocab, set | frozenset):
            vocab = sort_values(vocab)
        tokens = _tokens(vocab, budget)
        budget.need(VALUE * len(tokens), f"a vocabulary of {len(tokens):,} tokens or more")
        return tuple(dict.fromkeys(as_value(token, where="a token of the vocabulary") for token in tokens))
    except TypeError as error:
        what = f"the vocabulary must be a string, a list or a set of hashable tokens, not {short_repr(vocab)}"
        hint = 'pass the tokens inputs are made of, as vocab="abc" or vocab=[1, 2, 3]'
        if isinstance(error, TracrError):
            what, hint = f"{what}: {error.diagnostic.what}", error.diagnostic.hint
        raise VocabularyError(what, hint=hint) from None


def _tokens(vocab: Iterable[Value], budget: Budget) -> list[Value]:
    """The tokens, at most as many as fit into the memory."""
    tokens: list[Value] = []
    growing = Growing(budget, "the vocabulary has large tokens")
    left = itertools.islice(vocab, min(budget.most // VALUE + 1, sys.maxsize))
    while more := list(itertools.islice(left, growing.chunk)):
        growing.measure(more)
        tokens += more
    return tokens


@dataclass(frozen=True)
class Options:
    """How to compile. `tracr.compile` documents all fields except `output_first` and `soft`.

    `output_first` puts the outputs' directions first in the residual stream, where converters look for the logits.
    `soft` says how soft attention and steps are (`tracr.natural.soften`); `None`, as hard as possible.
    """

    vocab: tuple[Value, ...]
    max_seq_len: int
    causal: bool = False
    level: int = 1
    bos: Value = "bos"
    pad: Value = "pad"
    strict: bool = False
    max_values: int = 300_000
    max_cells: int = 3_000_000
    max_parameters: int = 250_000_000
    gap: float = GAP
    passes: Switches = None
    solve_seconds: float = 10.0
    output_first: bool = False
    max_memory: int = DEFAULT
    soft: Softness | None = None
    dtype: str = "float32"

    @property
    def format(self) -> Format:
        """The format that weights and activations are stored in."""
        return STORED[self.dtype]

    def on(self, name: SwitchName) -> bool:
        """Whether a pass or an option that has a switch is on."""
        return name in (self.passes or ())

    def check_gap(self) -> None:
        """Refuse a gap that makes attention too soft. Only for programs that use attention."""
        if self.soft is not None:
            return  # it is checked on all inputs, or by the constructions
        astray = leak(self.gap, self.max_seq_len)
        if astray > MOST_ASTRAY:
            share = f"up to {astray:.0%}" if astray < 1 else "all"
            raise CompileError(
                f"with a gap of {self.gap:g}, keys that are not selected may get {share} of the attention",
                hint=f"use a gap of at least {2 * math.log((self.max_seq_len + 1) / MOST_ASTRAY):.1f}",
            )

    def __post_init__(self) -> None:
        if not self.vocab:
            raise VocabularyError("the vocabulary is empty", hint='pass the tokens inputs are made of, as vocab="abc"')
        for name in ("max_seq_len", "max_values", "max_cells", "max_parameters"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1, error=CompileError))
        object.__setattr__(self, "max_memory", as_bytes(self.max_memory))
        longest, tokens = self.max_seq_len, len(self.vocab)
        listed = f"{tokens:,} tokens and {longest:,} positions (max_seq_len)"
        Budget(self.max_memory).need(VALUE * (tokens + longest), listed)
        for name in ("causal", "strict", "output_first"):
            object.__setattr__(self, name, flag(name, getattr(self, name), error=CompileError))
        if isinstance(self.level, bool) or not isinstance(self.level, int | np.integer) or self.level not in LEVELS:
            raise CompileError(f"there is no optimisation level {short_repr(self.level)}", hint=f"levels are {LEVELS}")
        object.__setattr__(self, "level", int(self.level))
        object.__setattr__(self, "passes", enabled(self.level, self.passes))
        for name, token in (("bos", self.bos), ("pad", self.pad)):
            as_value(token, where=f"the {name.upper()} token")
            if token in dict.fromkeys(self.vocab):
                raise VocabularyError(
                    f"the {name.upper()} token {token!r} is also in the vocabulary",
                    hint=f"pass another name, such as {name}='<{name}>'",
                )
        for name in ("gap", "solve_seconds"):
            object.__setattr__(self, name, number(name, getattr(self, name), above=0, error=CompileError))
        if self.gap > GAP * 256:
            raise CompileError(f"gap must be at most {GAP * 256:g}, not {self.gap:g}", hint=f"{GAP:g} is the default")
        self._check_dtype()
        if self.bos == self.pad:
            raise VocabularyError(f"BOS and PAD are both {self.bos!r}", hint="give them different names")

    def _check_dtype(self) -> None:
        """Refuse a number format that is unknown, or does not go with the other options."""
        if not isinstance(self.dtype, str) or self.dtype not in STORED:
            raise CompileError(f"dtype is {short_repr(self.dtype)}", hint=f"it can be {', '.join(STORED)}")
        if self.format.short and (self.gap != GAP or self.soft is not None):
            raise CompileError(
                f"the constructions for {self.dtype} need a gap of {GAP:g} between logits",
                hint="leave out gap, or use float32",
            )
