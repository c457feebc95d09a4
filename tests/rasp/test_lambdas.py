"""Lambdas as they were written."""

from __future__ import annotations

import functools
from typing import Any

from tracr.rasp.functions import Composition
from tracr.rasp.lambdas import lambda_body, written

PAIR = (lambda x: x + 1, lambda y: "é" + y)  # two on one line


def test_the_text_of_a_lambda() -> None:
    """The right one of several on a line, nested ones, and one over several lines."""
    assert [written(f) for f in PAIR] == ["lambda x: x + 1", 'lambda y: "é" + y']
    nested = lambda x: lambda y: x - y  # noqa: E731
    assert written(nested) == "lambda x: lambda y: x - y"
    assert written(nested(1)) == "lambda y: x - y"
    several = functools.partial(
        lambda x: (
            x if x else "a long text that makes this function stand on several lines"[0]
        )
    )  # fmt: skip
    assert written(several.func).startswith("lambda x: ( x if x else")


def test_other_functions_go_by_their_name() -> None:
    """Also lambdas whose text cannot be found, and compositions."""
    assert written(test_other_functions_go_by_their_name) == "test_other_functions_go_by_their_name"
    assert written(eval("lambda x: x")) == "<lambda>"
    assert written(Composition(PAIR[0], abs)) == "lambda x: x + 1 then abs"
    assert written(functools.partial(max, 1)).startswith("functools.partial")


def test_long_ones_are_cut() -> None:
    """A line of the program stays a line."""
    long = lambda x: x + 1111111111 + 2222222222 + 3333333333 + 4444444444 + 5555555555 + 6666666666 + 7  # noqa: E731
    assert len(written(long)) == 90
    assert written(long).endswith("…")


def test_equal_values_of_other_types_have_their_own_texts() -> None:
    """1, True and 1.0 are equal, and so are 0.0 and -0.0."""
    made: list[Any] = [lambda x, value=value: x == value for value in (1, True, 1.0, 0.0, -0.0)]
    texts = [lambda_body(one, ("x", "y")) for one in made]
    assert texts == ["x == 1", "x == True", "x == 1.0", "x == 0.0", "x == -0.0"]
