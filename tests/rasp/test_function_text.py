"""Functions as formulas: operators, lambdas, names, and texts in place of arguments."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tracr.rasp.function_text import UNKNOWN, applied, function_text, is_known
from tracr.rasp.functions import BinaryOperator, Composition, ConstantOperator, UnaryOperator, WeightedSum

LIMIT = 7
PLUS_ONE: Any = ConstantOperator("+", 1)
CHAIN: Any = functools.reduce(Composition, [PLUS_ONE] * 200)
x = abs


def doubled(x: int) -> int:
    return 2 * x


def adding(amount: Any) -> Any:
    return lambda value: value + amount


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (ConstantOperator("==", "x"), "x == 'x'"),
        (ConstantOperator("-", 3, reflected=True), "3 - x"),
        (BinaryOperator("both"), "x and y"),
        (UnaryOperator("round"), "round(x)"),
        (UnaryOperator("not"), "not x"),
        (UnaryOperator("indicator"), "1 if x else 0"),
        (WeightedSum(2, -1), "2 * x + -1 * y"),
        (doubled, "doubled"),
        (lambda token: token == "a", "x == 'a'"),
        (lambda y, x: y - x, "x - y"),
        (lambda first, second: first if second > LIMIT else 0, "x if y > 7 else 0"),
        (adding(5), "x + 5"),
        (adding([1]), "x + amount"),
        (lambda a, b=3: a + b, "x + 3"),
        (Composition(lambda a: a - 1, ConstantOperator("*", 2)), "(x - 1) * 2"),
        (Composition(doubled, abs), "abs(doubled(x))"),
    ],
)
def test_texts(function: Any, text: str) -> None:
    """An expression in x and y, or a name; captured values take the place of their names."""
    assert function_text(function) == text


@pytest.mark.parametrize(
    "function",
    [
        eval("lambda x: x"),
        functools.partial(max, 1),
        lambda value: sum(x * x for x in range(value)),  # a variable of its own
        lambda *values: values[0],
        lambda a: x(a),  # a name that an argument would hide
        lambda a: f"{a}",
        lambda a: (
            a + 1111111111 + 2222222222 + 3333333333 + 4444444444 + 5555555555 + 6666666666 + 777777777 + 8888888888
        ),
        CHAIN,
    ],
)
def test_unknown_ones(function: Any) -> None:
    """Functions without a readable text say so, without an address or fields."""
    text = function_text(function)
    assert not is_known(text)
    assert " at 0x" not in text
    assert applied(text, ["a"]) == UNKNOWN


def test_arguments() -> None:
    """Texts in place of arguments keep the order of operations; strings and attributes are left alone."""
    assert applied("x * y", ["a + 1", "b"]) == "(a + 1) * b"
    assert applied("x == 'x y'", ["tokens"]) == "tokens == 'x y'"
    assert applied("x.y + max(x, y)", ["a", "b c"]) == "a.y + max(a, (b c))"
    assert applied("-x", ["-a"]) == "-(-a)"
    assert applied("f", ["a", "b"]) == "f(a, b)"
    assert applied("y", ["a", "b + 1"]) == "b + 1"
    assert applied("round(x)", ["a + b"]) == "round(a + b)"
    assert applied("x and y", ["y", "x"]) == "y and x"
    assert applied("x", [UNKNOWN]) == UNKNOWN


def test_texts_of_earlier_versions() -> None:
    """Models saved by them have texts that are no formulas: their tables are shown."""
    for text in ("x and y; map_2: x == 0", "x > 0 then not x", "of the position", "<lambda> then <lambda>"):
        assert not is_known(text)
