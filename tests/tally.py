"""Counts which random draws were compared, so that refused programs do not pass for tested ones.

A test compiles a draw with `compile_case`, or in a block `compiling`. If the compiler refuses it, or if nothing about
it can be compared, the draw ends with `NotCompared`. A `Tally` counts these draws, and at the end of the run asserts
that they were few. Hypothesis tests take the decorator `mostly_compared`, loops over seeds the context manager `Tally`.
Hypothesis draws other examples on every run, so there the share may fall below its mean by chance, but not by far.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec

import tracr
from tests.agreement import compile_quietly
from tests.strategies import Case
from tracr.rasp.rasp import Value

P = ParamSpec("P")
SHARE = 0.9  # of the draws of a Hypothesis test: nearly all compile
DEVIATIONS = 5  # a share of random draws may be below its mean by this many standard deviations


class NotCompared(Exception):
    """Ends a draw without a comparison; only a Tally catches it."""


@contextmanager
def compiling() -> Iterator[None]:
    """If the compiler refuses what stands in the block, the draw ends; the refusal must give advice."""
    try:
        yield
    except tracr.CompileError as refusal:
        if not refusal.diagnostic.hint:
            raise AssertionError(f"refused without advice: {refusal}") from refusal
        raise NotCompared(str(refusal)) from refusal


def compile_case(case: Case, **options: Any) -> tracr.CompiledModel:
    """Compile a random program; a refusal ends the draw."""
    options = {"bos": "<bos>", "pad": "<pad>"} | options
    with compiling():
        return compile_quietly(case.program, case.vocab, case.max_seq_len, causal=case.causal, **options)


def inputs_for(model: tracr.CompiledModel, case: Case, count: int) -> list[list[Value]]:
    """Those of a case's inputs that have a length the model takes; a draw without any ends."""
    shortest, longest = model.program.lengths
    found = [xs for xs in case.inputs(count) if shortest <= len(xs) <= longest]
    if not found:
        raise NotCompared(f"no input has {shortest} to {longest} tokens")
    return found


class Tally:
    """Asserts at its end that at least a share of the draws was compared."""

    def __init__(self, least: float, *, random: bool = False) -> None:
        self.least, self.random = least, random
        self.drawn = self.compared = 0
        self.reasons: list[str] = []

    @contextmanager
    def draw(self) -> Iterator[None]:
        """One draw: what stands in the block is its comparison."""
        self.drawn += 1
        try:
            yield
        except NotCompared as reason:
            self.reasons.append(str(reason))
        else:
            self.compared += 1

    def check(self) -> None:
        """Fail if too few draws were compared, or none was drawn."""
        assert self.drawn, "nothing was drawn"
        expected = self.least * self.drawn
        if self.random:
            expected = max(1.0, expected - DEVIATIONS * math.sqrt(expected * (1 - self.least)))
        assert self.compared >= expected, (
            f"{self.compared} of {self.drawn} draws were compared, expected {self.least:.0%}; the others, for example: "
            + "; ".join(self.reasons[:3])
        )

    def __enter__(self) -> Tally:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.check()


def mostly_compared(least: float = SHARE) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate a Hypothesis test, above `given`: a run in which clearly less than this share is compared fails."""

    def decorate(test: Callable[P, None]) -> Callable[P, None]:
        handle: Any = test.hypothesis  # type: ignore[attr-defined]
        inner: Callable[P, None] = handle.inner_test
        tally = Tally(least)

        @functools.wraps(inner)
        def counted(*args: P.args, **kwargs: P.kwargs) -> None:
            with tally.draw():
                inner(*args, **kwargs)

        @functools.wraps(test)
        def whole(*args: P.args, **kwargs: P.kwargs) -> None:
            nonlocal tally
            with Tally(least, random=True) as tally:
                test(*args, **kwargs)

        handle.inner_test = counted
        return whole

    return decorate
