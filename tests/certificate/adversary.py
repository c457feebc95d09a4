"""An execution that conforms to an arithmetic, and is as bad as it may be: exact fractions, rounded one by one.

Sums are random trees, with or without fused multiply-adds; zero products are left out or not; an inexact result is any
neighbour within the relative error that is allowed; ties go either way; small results are flushed, all or none; a bias
is a term of the sum, or added to the stored sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tracr_check.arithmetic import Arithmetic

__all__ = ["Machine"]

ZERO = Fraction(0)


def _exponent(size: Fraction) -> int:
    """The e with 2^e <= size < 2^(e + 1)."""
    e = size.numerator.bit_length() - size.denominator.bit_length()
    return e if Fraction(2) ** e <= size else e - 1


class Machine:
    """One execution; its choices are drawn from `rng`."""

    def __init__(self, arithmetic: Arithmetic, rng: np.random.Generator) -> None:
        self.a, self.rng = arithmetic, rng
        self.flush = bool(rng.integers(2))
        self.fused, self.sequential = rng.random(2)

    def _neighbours(self, x: Fraction, bits: int, tiny: float) -> tuple[Fraction, Fraction]:
        step = Fraction(2) ** (max(_exponent(abs(x)), math.frexp(tiny)[1] - 1) - bits + 1)
        below = x // step * step
        return below, below if below == x else below + step

    def operation(self, x: Fraction) -> Fraction:
        """The result of a product or an addition."""
        if not x:
            return x
        below, above = self._neighbours(x, self.a.sum_bits, self.a.tiny)
        near, far = sorted((below, above), key=lambda end: abs(end - x))
        allowed = abs(far - x) <= abs(x) * Fraction(2) ** -self.a.sum_bits
        return self._flushed(far if allowed and self.rng.random() < 0.7 else near, self.a.tiny)

    def store(self, x: Fraction) -> Fraction:
        """The nearest number of the format."""
        if not x or (not self.a.narrow and not self.flush):
            return x
        below, above = self._neighbours(x, self.a.stored_bits, self.a.stored_tiny)
        down, up = x - below, above - x
        upwards = up < down or (up == down and self.rng.random() < 0.5)
        return self._flushed(above if upwards else below, self.a.stored_tiny)

    def _flushed(self, x: Fraction, tiny: float) -> Fraction:
        return ZERO if self.flush and abs(x) < Fraction(tiny) else x

    def add(self, first: Fraction, second: Fraction) -> Fraction:
        """A stored sum of two numbers."""
        return self.store(self.operation(first + second))

    def dot(self, x: Sequence[Fraction], w: Sequence[Fraction], bias: Fraction = ZERO) -> Fraction:
        """A dot product and its bias, as stored."""
        waiting = [(a * b, True) for a, b in zip(x, w, strict=True) if (a and b) or self.rng.random() < 0.1]
        inside = bool(self.rng.integers(2))
        if inside:
            waiting.append((bias, False))
        total = self.store(self._sum(waiting))
        return total if inside else self.add(total, bias)

    def _sum(self, waiting: list[tuple[Fraction, bool]]) -> Fraction:
        """The sum of some terms; those marked are products that are not rounded yet."""
        self.rng.shuffle(waiting)
        if self.rng.random() < 0.3:
            waiting.sort(key=lambda term: abs(term[0]), reverse=bool(self.rng.integers(2)))
        chain = self.rng.random() < self.sequential
        while len(waiting) > 1:
            second = waiting.pop(len(waiting) - 1 if chain else int(self.rng.integers(len(waiting))))
            place = len(waiting) - 1 if chain else int(self.rng.integers(len(waiting)))
            first = waiting[place]
            kept = second[0] if second[1] and self.rng.random() < self.fused else self.rounded(second)
            waiting[place] = self.operation(self.rounded(first) + kept), False
        return self.rounded(waiting[0]) if waiting else ZERO

    def rounded(self, term: tuple[Fraction, bool]) -> Fraction:
        """A term whose product is computed."""
        return self.operation(term[0]) if term[1] else term[0]

    def mlp(self, x: Sequence[Fraction], weights: Any) -> list[Fraction]:
        """The stream after an MLP, from `w_in`, `b_in`, `w_out` and `b_out` in fractions, by column."""
        w_in, b_in, w_out, b_out = weights
        hidden = [max(self.dot(x, column, bias), ZERO) for column, bias in zip(w_in, b_in, strict=True)]
        written = [self.dot(hidden, column, bias) for column, bias in zip(w_out, b_out, strict=True)]
        return [self.add(one, more) for one, more in zip(x, written, strict=True)]
