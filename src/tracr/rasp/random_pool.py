"""The pool of a random program: the s-ops drawn so far and the constants, with the facts that readers need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from tracr.rasp.annotations import categorical, numerical
from tracr.rasp.expressions import Full, Selector, SOp
from tracr.rasp.random_functions import ValueKind, kind_of
from tracr.values import Number, Value, is_number

__all__ = ["NUMBERS", "Limits", "NothingFitsError", "Pool", "PoolSOp", "PoolSelector"]

T = TypeVar("T")

NUMBERS: tuple[Number, ...] = (-2, -1, 0, 1, 2, 3, -1.5, -0.5, 0.1, 0.25, 0.5)
NAMES = ("a", "b", "out", "map_2", "tokens", "one", "x:1", "two words")


@dataclass(frozen=True)
class Limits:
    """The inputs and the limits of a random program; see `random_program`."""

    vocab: tuple[Value, ...]
    max_seq_len: int
    composite: bool
    max_mean_depth: int
    max_values: int


@dataclass(frozen=True)
class PoolSOp:
    """An s-op of the pool, with the facts that its readers need."""

    sop: SOp
    kind: ValueKind
    size: int  # roughly how many values it takes
    none: bool = False  # it may be None
    means: int = 0  # how deep means of means are nested in it
    distinct: bool = False  # no two positions hold the same value


@dataclass(frozen=True)
class PoolSelector:
    """A selector of the pool; `single` if every query selects at most one key."""

    selector: Selector
    single: bool


class NothingFitsError(Exception):
    """The new s-op can read no s-op of the pool; another kind of s-op is drawn instead."""


class Pool:
    """The s-ops and selectors drawn so far, and the random choices among them."""

    def __init__(self, rng: np.random.Generator, limits: Limits) -> None:
        self.rng, self.limits = rng, limits
        self.strings = (*(token for token in limits.vocab if isinstance(token, str)), "p", "q")
        self.numbers = (*(token for token in limits.vocab if is_number(token)), *NUMBERS)
        self.items: list[PoolSOp] = []
        self.readable: list[PoolSOp] = []  # those that leave room for a reader
        self.choices: list[PoolSelector] = []

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def one_of(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def pick(self, fits: Callable[[PoolSOp], bool]) -> PoolSOp:
        """An s-op to read: mostly the latest that fits, so that most drawn s-ops are used."""
        options = [item for item in self.readable if fits(item)]
        if not options:
            raise NothingFitsError
        return options[-1] if self.chance(0.6) else self.one_of(options)

    def small(self, item: PoolSOp) -> bool:
        """Whether a nonlinear s-op may read it."""
        return item.size <= self.limits.max_values

    def pair(self) -> tuple[PoolSOp, PoolSOp]:
        """Two s-ops to tabulate together: mostly of one kind, sometimes the same one twice, sometimes a constant."""
        fst = self.pick(self.small)
        alike = self.chance(0.7)
        snd = self.pick(lambda item: not alike or item.kind.numeric == fst.kind.numeric)
        snd = self.one_of([fst, self.constant()]) if self.chance(0.2) else snd
        if fst.size * snd.size > self.limits.max_values:
            raise NothingFitsError
        return (fst, snd) if self.chance(0.5) else (snd, fst)

    def value(self, kind: ValueKind) -> Value:
        """A constant of this kind."""
        if kind is ValueKind.BOOLEAN:
            return self.chance(0.5)
        options: list[Value] = [] if kind is ValueKind.STRING else list(self.numbers)
        return self.one_of(options if kind is ValueKind.NUMBER else [*options, *self.strings])

    def constant(self) -> PoolSOp:
        fill = None if self.chance(0.05) else self.value(self.one_of(list(ValueKind)))
        return PoolSOp(Full(fill), kind_of([fill]), 1, none=fill is None)

    def annotated(self, item: PoolSOp) -> PoolSOp:
        """The item, sometimes with a name or an encoding."""
        sop = item.sop.named(self.one_of(NAMES)) if self.chance(0.3) else item.sop
        if item.kind.numeric and self.chance(0.25):
            sop = numerical(sop)
        elif self.small(item) and self.chance(0.15):
            sop = categorical(sop)
        return item if sop is item.sop else replace(item, sop=sop)
