"""What a RASP value is: hashable, finite, and compared with `==`."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracr.errors import ExpressionError
from tracr.rasp import rasp
from tracr.rational import fraction_of
from tracr.values import as_value, exact_mean, is_number, sort_values

numbers = st.integers(-(2**24), 2**24) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()


@pytest.mark.parametrize(
    ("given_value", "plain"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.longdouble(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ((np.int64(1), "a"), (1, "a")),
    ],
)
def test_numpy_scalars_become_python_values(given_value: object, plain: object) -> None:
    """A numpy scalar is normalised to the Python value it equals, inside tuples too."""
    value = as_value(given_value)
    assert value == plain
    assert type(value) is type(plain)
    if isinstance(value, tuple):
        assert [type(v) for v in value] == [int, str]


@pytest.mark.parametrize("value", ["a", 3, 2.5, True, None, (1, "b"), frozenset({1}), b"x", 1j, Fraction(1, 3), ""])
def test_plain_hashables_are_values_as_they_are(value: object) -> None:
    """Any hashable Python object is a value, unchanged."""
    assert as_value(value) == value
    assert type(as_value(value)) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        np.float32("nan"),
        np.float64("inf"),
        np.longdouble("nan"),
        (1, float("nan")),
    ],
)
def test_nan_and_infinity_are_refused(value: object) -> None:
    """NaN and the infinities are no values, inside tuples either, and the message names them."""
    with pytest.raises(ExpressionError, match=r"(nan|inf).*not a number a transformer can hold"):
        as_value(value)


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, np.array([1]), (1, [2])])
def test_unhashable_objects_are_refused(value: object) -> None:
    """Lists, dicts, sets and arrays are no values; the message suggests a tuple."""
    with pytest.raises(ExpressionError, match=r"(?s)not hashable.*tuple"):
        as_value(value)


def test_the_error_says_where_the_value_stood() -> None:
    """`where` begins the message."""
    with pytest.raises(ExpressionError, match=r"^the seventh thing is"):
        as_value([], where="the seventh thing")


@pytest.mark.parametrize("expr", [rasp.tokens, rasp.Select(1, 1, rasp.Comparison.EQ), (1, rasp.tokens)])
def test_an_expression_is_not_a_value(expr: object) -> None:
    """An s-op or selector hashes, but as a value it would only be a mistake."""
    with pytest.raises(ExpressionError, match="a program, not a value"):
        as_value(expr)


def test_numbers_are_int_float_and_bool() -> None:
    """Only int, float and bool can be averaged."""
    assert all(map(is_number, [1, 0.5, True]))
    assert not any(map(is_number, ["1", None, (1,), 1j, Fraction(1, 2)]))


@given(st.lists(numbers, min_size=1, max_size=12))
def test_the_mean_is_the_correctly_rounded_exact_mean(values: list[float]) -> None:
    """Rounding happens once, at the end, from the exact rational mean."""
    exact = sum(map(fraction_of, values), Fraction(0)) / len(values)
    assert exact_mean(values) == float(exact)
    assert isinstance(exact_mean(values), float)


@given(st.lists(numbers, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_mean_does_not_depend_on_the_order(values: list[float], rng: random.Random) -> None:
    """The same numbers in any order have the same mean, to the last bit."""
    shuffled = rng.sample(values, len(values))
    assert exact_mean(shuffled) == exact_mean(values)


def test_the_mean_survives_what_float_sums_lose() -> None:
    """Cancellation and overflow of a running float sum do not show."""
    assert exact_mean([1e16, 1.0, -1e16]) == 1 / 3
    assert exact_mean([1.7e308, 1.7e308]) == 1.7e308
    assert exact_mean([5e-324, 5e-324]) == 5e-324


def test_sorting_goes_by_type_then_value() -> None:
    """Numbers, strings, bytes, tuples, others, and `None` last."""
    assert sort_values([None, (2,), "b", 1.5, b"z", True, "a", (1, "x"), 0]) == [
        *[0, True, 1.5, "a", "b", b"z"],
        *[(1, "x"), (2,), None],
    ]


def test_values_without_an_order_are_sorted_by_their_text() -> None:
    """Tuples that cannot be compared with `<` still come out in one order."""
    mixed = [(1, "a"), ("a", 1), (None, 2)]
    assert sort_values(mixed) == sort_values(mixed[::-1])


@given(st.sets(numbers | st.text(max_size=3) | st.none() | st.tuples(st.integers(), st.text(max_size=2))))
def test_the_order_of_a_set_is_fixed(values: set[object]) -> None:
    """The same set of values sorts the same way, however it is iterated."""
    assert sort_values(sorted(values, key=repr)) == sort_values(sorted(values, key=repr, reverse=True))
