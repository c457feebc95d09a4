"""Numbers at the edge of float32: either right, or refused."""

from __future__ import annotations

import pytest

import tracr
from tests.agreement import assert_agrees, compile_quietly, some_inputs
from tests.tally import Tally, compiling
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison, SOp, Value

ALL = rasp.Select(1, 1, Comparison.EQ)
BEFORE = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ)
AFTER = rasp.Select(rasp.indices, rasp.indices, Comparison.GEQ)
MEAN = rasp.Aggregate(ALL, rasp.tokens)
PREVIOUS = rasp.Aggregate(
    rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ), rasp.numerical(rasp.tokens), default=2097151
)
DIFFERENCE = rasp.numerical(rasp.Aggregate(BEFORE, rasp.tokens)) - rasp.numerical(rasp.Aggregate(AFTER, rasp.tokens))


def right_or_refused(program: SOp, vocab: tuple[Value, ...], longest: int) -> bool:
    """Whether it compiles, at every level; if so it agrees."""
    try:
        models = [compile_quietly(program, vocab, longest, level=level) for level in LEVELS]
    except tracr.CompileError:
        return False
    for model in models:
        assert_agrees(model, program, some_inputs(vocab, longest, 60))
    return True


@pytest.mark.parametrize(
    ("program", "vocab"),
    [
        (MEAN, (-(2**24), 2**24 - 1, 1)),
        (MEAN, (1e6, -1e6, 0.001)),
        (rasp.LinearSequenceMap(MEAN, rasp.tokens, 1000, -1000), (1e6, 1e6 + 1, 1e6 + 2)),
        (rasp.LinearSequenceMap(MEAN, rasp.tokens, 1000, -1000), (100000.1, 100000.2, 100000.4)),
        (DIFFERENCE, (1e6, 1e6 + 1, 1e6 + 2)),
        (DIFFERENCE, (2**24, 2**24 - 1, 0)),
        (rasp.SelectorWidth(rasp.Select(rasp.numerical(rasp.tokens), rasp.tokens, Comparison.EQ)), (1e-40, 2e-40, 0)),
        (rasp.LinearSequenceMap(rasp.tokens, PREVIOUS, 1000, -999), (2097150, 2097151, 2097152)),
        (rasp.LinearSequenceMap(rasp.tokens, PREVIOUS, 1000.1, -1000.1), (10000, 10001, 10002)),
        (rasp.numerical(rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, Comparison.EQ), 1e6 - MEAN)), (0, 1, 7)),
    ],
)
def test_what_float32_cannot_hold_is_refused(program: SOp, vocab: tuple[Value, ...]) -> None:
    """Cancellation of large numbers, and numbers too close to zero."""
    assert not right_or_refused(program, vocab, 4)


@pytest.mark.parametrize(
    ("program", "vocab"),
    [
        (MEAN, (1e5, 3e5, 7e5)),
        (MEAN, (1e-320, 1)),
        (rasp.LinearSequenceMap(rasp.tokens, rasp.tokens, 1, 1), (1e-310, 1)),
        (DIFFERENCE, (1, 2, 3)),
        ((MEAN + 1e17) - 1e17, (0, 1)),
        (rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ), rasp.indices, default=0.1), (0, 1)),
        (MEAN > 2e-5, (1e-5, 2e-5, 3e-5)),
        (rasp.SequenceMap(lambda t, m: t - m, rasp.tokens, MEAN), (0.1, 0.2, 0.3)),
        (rasp.SequenceMap(lambda m, i: m * i, MEAN, rasp.indices), (0.1, 0.2, 0.3)),
        (rasp.Map(lambda m: 1 / (1 + abs(m)), MEAN), (1 / 3, 2 / 3, 1.0)),
        (rasp.tokens, (10**400, 1)),
        (rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.LT)), (10**400, 1)),
        (rasp.LinearSequenceMap(rasp.indices, rasp.indices, 10**400, 1), ("a",)),
    ],
)
def test_what_float32_can_hold_compiles(program: SOp, vocab: tuple[Value, ...]) -> None:
    """Large numbers of one sign, small numbers, results that differ by rounding, and categories of any size."""
    assert right_or_refused(program, vocab, 4)


def test_adjacent_floats_are_told_apart_by_the_vectorised_interpreter() -> None:
    """0.6 and 0.1 * 5 + 0.1 are neighbours: their midpoint rounds to one of them."""
    sums = rasp.LinearSequenceMap(rasp.length, rasp.indices, 0.1, 0.1)
    assert right_or_refused(rasp.SequenceMap(lambda x, y: x > y, sums, rasp.indices), ("a",), 5)


def test_large_means_of_one_sign_are_relatively_exact() -> None:
    """A mean of positions at length 100 is not refused for its size."""
    assert right_or_refused(rasp.Aggregate(BEFORE, rasp.indices), ("a", "b"), 100)


def test_a_very_long_model_is_refused_before_memory_runs_out() -> None:
    """A million positions would need a million directions."""
    with pytest.raises(tracr.LimitError, match=r"1,000,000 values[\s\S]*max_parameters"):
        tracr.compile(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)), "abc", 10**6)


def test_equal_numbers_among_strings_may_be_copied_several_at_a_time() -> None:
    """Equal keys have equal values, so several numbers have a mean; several strings have none."""
    program = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ), rasp.tokens)
    model = tracr.compile(program, ["a", 1], 3)
    assert assert_agrees(model, program, [[1, 1], ["a", 1, 1], ["a", "a"], ["a"]]) == 3


@pytest.mark.parametrize(("gap", "least"), [(20, 0.95), (40.0, 1.0), (100, 1.0)])
def test_a_smaller_gap_is_right_or_refused(gap: float, least: float) -> None:
    """Attention that leaks counts as error: models that compile at a smaller gap agree with their programs."""
    with Tally(least) as tally:
        for example in programs.EXAMPLES.values():
            with tally.draw():
                with compiling():
                    model = compile_quietly(example.program, example.vocab, example.max_seq_len, gap=gap)
                assert model.verify(budget=300)


def test_a_gap_that_leaks_too_much_is_refused() -> None:
    """A gap is a positive number, and large enough for the longest input; it survives saving."""
    mean = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ), rasp.tokens == "x")
    for gap, message in (
        (8, "may get up to 11% of the attention"),
        (12, "off by"),
        (0, "positive"),
        (None, "positive"),
    ):
        with pytest.raises(tracr.CompileError, match=message):
            tracr.compile(mean, "xy", 5, gap=gap)  # type: ignore[arg-type]
