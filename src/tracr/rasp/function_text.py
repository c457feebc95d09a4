"""Functions as formulas: the text of a function is an expression in its arguments x, y, ..., or its name.

`x == 'a'` is the text of a comparison and of `lambda token: token == "a"`; the text of a function with a name is its
name. A text in angle brackets, such as `<lambda>`, says that the function has neither: readers show its table instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import FunctionType
from typing import Any, cast

from tracr.rasp.functions import (
    BinaryOperator,
    Comparison,
    Composition,
    ConstantOperator,
    Printed,
    UnaryOperator,
    WeightedSum,
)
from tracr.rasp.lambdas import is_lambda, lambda_body

__all__ = ["ARGUMENTS", "UNKNOWN", "applied", "function_text", "is_known"]

ARGUMENTS = ("x", "y", "z", "u", "v", "w")
"""The names of the arguments in a text."""
UNKNOWN = "<table>"
"""The text of a function that is known by its table only."""
MOST_CHARACTERS = 100
WORDS = {"both": "and", "either": "or"}  # of operators
ARGUMENT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w.'"])[xyzuvw](?![\w'"(])""")
NAME = re.compile(r"[^\W\d]\w*(\.\w+)*")
EARLIER = re.compile(r"; | then |<lambda>|^of the ")
WHOLE = re.compile(r"[^\s-]\S*|[\w.]+\([^()]*\)|\([^()]*\)|'[^']*'")  # a part that needs no brackets around it


def function_text(function: Any) -> str:
    """The text of a function.

    >>> [function_text(one) for one in (ConstantOperator("<", 3), Composition(abs, UnaryOperator("neg")), len)]
    ['x < 3', '-abs(x)', 'len']
    """
    if isinstance(function, Composition):
        return _composed(function)
    if isinstance(function, Printed | Comparison):
        return _short(_printed(function))
    if is_lambda(function):
        return _short(lambda_body(cast(FunctionType, function), ARGUMENTS) or "<lambda>", "<lambda>")
    return getattr(function, "__name__", None) or f"<{type(function).__name__}>"


def _composed(function: Composition) -> str:
    text = "x"
    for one in function.functions():
        text = applied(function_text(one), [text])
        if not is_known(text):
            break
    return text


def _printed(function: Printed | Comparison) -> str:
    match function:
        case UnaryOperator(symbol="indicator"):
            return "1 if x else 0"
        case UnaryOperator(symbol=symbol) if symbol.isalpha() and symbol not in ("not", "neg", "pos"):
            return f"{symbol}(x)"
        case BinaryOperator(symbol=symbol):
            return f"x {WORDS.get(symbol, symbol)} y"
        case ConstantOperator(symbol=symbol, constant=constant, reflected=reflected):
            sides = (repr(constant), "x") if reflected else ("x", repr(constant))
            return f" {WORDS.get(symbol, symbol)} ".join(sides)
        case WeightedSum(first=first, second=second):
            return f"{first!r} * x + {second!r} * y"
        case _:
            return str(function)


def is_known(text: str) -> bool:
    """Whether a text says what the function computes; those of models saved by earlier versions may not."""
    return not text.startswith("<") and not EARLIER.search(text)


def applied(text: str, arguments: Sequence[str]) -> str:
    """The text of a function with other texts in place of its arguments; `UNKNOWN` if it would be long.

    >>> applied("x - y", ["length", "indices + 1"]), applied("x == 'x'", ["tokens"]), applied("len", ["tokens"])
    ('length - (indices + 1)', "tokens == 'x'", 'len(tokens)')
    """
    if not is_known(text) or not all(map(is_known, arguments)):
        return UNKNOWN
    if len(arguments) > len(ARGUMENTS):
        return UNKNOWN
    if text in ARGUMENTS[: len(arguments)]:
        return arguments[ARGUMENTS.index(text)]
    if NAME.fullmatch(text):
        return _short(f"{text}({', '.join(arguments)})")
    given = dict(zip(ARGUMENTS, arguments, strict=False))
    if len(text) > MOST_CHARACTERS:
        return UNKNOWN

    def put(found: re.Match[str]) -> str:
        name = found[0]
        if name not in given:
            return name
        inside = found.start() > 0 and text[found.start() - 1] == "(" and text[found.end() : found.end() + 1] == ")"
        return given[name] if inside or WHOLE.fullmatch(given[name]) else f"({given[name]})"

    return _short(ARGUMENT.sub(put, text))


def _short(text: str, otherwise: str = UNKNOWN) -> str:
    return text if len(text) <= MOST_CHARACTERS else otherwise
