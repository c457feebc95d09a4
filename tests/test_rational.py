"""Exact arithmetic: whichever way a fraction is computed, the same float comes out."""

from __future__ import annotations

import operator
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tracr.rasp import rasp
from tracr.rational import fraction_of, rounded, rounded_mean, weighted_sum

simple = st.builds(Fraction, st.integers(-300, 300), st.integers(1, 120))
SYMBOLS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}


@given(simple)
def test_a_float_stands_for_the_simple_fraction_it_rounds(fraction: Fraction) -> None:
    """1/3 comes back from 0.3333333333333333."""
    assert fraction_of(rounded(fraction)) == fraction


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_a_float_stands_for_rounds_to_it(number: float) -> None:
    """The fraction found for a float rounds to the same float."""
    assert rounded(fraction_of(number)) == number


@pytest.mark.parametrize("symbol", list(SYMBOLS))
@given(x=simple, y=simple)
def test_operators_round_once(symbol: str, x: Fraction, y: Fraction) -> None:
    """The operators between s-ops, and with a constant, give the float next to the exact result."""
    compute = SYMBOLS[symbol]
    first, second = rounded(x), rounded(y)
    assume(y != 0 or symbol not in "/%")
    exact = rounded(compute(x, y))
    assert compute(rasp.tokens, second)([first]) == [exact]
    assert compute(rasp.tokens, rasp.Full(second))([first]) == [exact]


@given(st.lists(simple, min_size=4, max_size=4))
def test_weighted_sums_round_once(numbers: list[Fraction]) -> None:
    """Products and sum together."""
    a, x, b, y = numbers
    assert weighted_sum(*map(rounded, numbers)) == rounded(a * x + b * y)


def test_the_same_number_by_different_ways() -> None:
    """The twins that users met."""
    assert (rasp.tokens + 0.2)([0.1]) == [0.3]
    assert (1 - rasp.tokens)([2 / 3]) == [1 / 3]
    assert (rasp.tokens**2)([0.1]) == [0.01]
    assert (rasp.tokens // 0.1)([1]) == [10.0]
    everywhere = rasp.Select(1, 1, rasp.Comparison.EQ)
    assert rasp.Aggregate(everywhere, rasp.tokens)([0.1, 0.2]) == [0.15, 0.15]


def test_types_and_errors_are_pythons() -> None:
    """Integers stay integers, texts texts; what Python refuses is refused."""
    assert (rasp.tokens * 2)([3, "a", 1.5]) == [6, "aa", 3.0]
    assert type((rasp.tokens // 2)([3])[0]) is int
    assert type((rasp.tokens // 0.5)([3])[0]) is float
    with pytest.raises(ValueError, match="division"):
        (1 / rasp.tokens)([0.0])


def test_a_function_of_ones_own_computes_as_python_does() -> None:
    """Nothing rounds what a function returns."""
    assert rasp.Map(lambda x: x + 0.2, rasp.tokens)([0.1]) == [0.1 + 0.2]


def test_remembered_results_keep_their_types() -> None:
    """Equal arguments of other types give the result of their own type, whichever came first."""
    for numbers in ((2.0, 1.0), (2, 1), (True, 2), (2.0, True)):
        first, second = numbers
        expected = first * 3 + second * 4
        assert repr(weighted_sum(first, 3, second, 4)) == repr(expected)


@given(st.lists(simple, min_size=1, max_size=6))
def test_means_round_once(numbers: list[Fraction]) -> None:
    """The mean of the fractions, in any order."""
    floats = [rounded(number) for number in numbers]
    assert (
        rounded_mean(tuple(floats))
        == rounded_mean(tuple(reversed(floats)))
        == rounded(sum(numbers, Fraction(0)) / len(numbers))
    )
