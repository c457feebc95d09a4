"""The tally itself: refused draws do not pass for compared ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.strategies import Case
from tests.tally import NotCompared, Tally, compile_case, compiling, mostly_compared

pytestmark = pytest.mark.repository


def run_of(compared: Callable[[int], bool], least: float) -> Callable[[], None]:
    """A Hypothesis test in which some draws are compared."""

    @mostly_compared(least)
    @settings(max_examples=50, database=None)
    @given(st.integers(0, 1000))
    def run(number: int) -> None:
        if not compared(number):
            raise NotCompared("a number that is not compared")

    return run


def test_a_run_of_refusals_fails() -> None:
    """It says how many draws were compared, and why the others were not."""
    with pytest.raises(AssertionError, match=r"0 of 50 draws were compared, expected 1%.*a number that is not"):
        run_of(lambda number: False, 0.01)()


def test_a_share_may_be_missed_by_chance_but_not_by_far() -> None:
    """About half of the draws are compared: a run that expects half passes, one that expects nearly all fails."""
    for _ in range(5):
        run_of(lambda number: number % 2 == 0, 0.5)()
    with pytest.raises(AssertionError, match="expected 95%"):
        run_of(lambda number: number % 2 == 0, 0.95)()
    run_of(lambda number: number % 2 == 0, 0.02)()
    with pytest.raises(AssertionError, match="expected 0%"):
        run_of(lambda number: False, 0.0)()


def test_a_run_is_counted_from_its_beginning() -> None:
    """Called twice it passes twice, and wrong comparisons stay failures."""
    run = run_of(lambda number: True, 1.0)
    run()
    run()
    with pytest.raises(ZeroDivisionError):
        run_of(lambda number: bool(1 // 0), 0.0)()


def test_a_loop_is_counted() -> None:
    """The share is asserted at the end, unless the loop failed before."""
    with Tally(least=0.5) as tally:
        for number in range(4):
            with tally.draw():
                if number % 2:
                    raise NotCompared("odd")
    assert (tally.compared, tally.drawn, tally.reasons) == (2, 4, ["odd", "odd"])
    with pytest.raises(AssertionError, match="nothing was drawn"), Tally(least=0.0):
        pass
    with pytest.raises(KeyError), Tally(least=1.0) as tally, tally.draw():
        raise KeyError


def test_a_refusal_ends_the_draw_if_it_gives_advice() -> None:
    """Refusals without a hint are failures."""
    with pytest.raises(NotCompared, match="max_seq_len"), compiling():
        tracr.compile(Case(1, ("a",)).program, "a", -1)
    with pytest.raises(AssertionError, match="without advice"), compiling():
        raise tracr.CompileError("no")
    assert compile_case(Case(1, ("a", "b"))).options.vocab == ("a", "b")
