"""Functions that know how to print themselves: operators, comparisons, and compositions of maps."""

from __future__ import annotations

import enum
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tracr.rational import exact_power, exactly, weighted_sum
from tracr.values import LARGEST_VALUE, LONGEST_STRING, Value, as_value

__all__ = [
    "BinaryOperator",
    "Comparison",
    "Composition",
    "ConstantOperator",
    "Function",
    "Printed",
    "UnaryOperator",
    "WeightedSum",
    "function_name",
]

Function = Callable[..., Any]
WIDTHS = re.compile(r"\d+|\*")  # how wide a format makes its output


def _times(x: Any, y: Any) -> Any:
    for text, times in ((x, y), (y, x)):
        if isinstance(text, str) and isinstance(times, int) and len(text) * times > LONGEST_STRING:
            raise OverflowError(f"a text of {len(text) * times:,} characters is too long")
    return x * y


def _modulo(x: Any, y: Any) -> Any:
    if isinstance(x, str) and any(width == "*" or int(width) > 1000 for width in WIDTHS.findall(x)):
        raise OverflowError(f"the format {x!r} may make a text that is too long")
    return x % y


def _power(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int) and y > 0 and x.bit_length() * y > LARGEST_VALUE.bit_length() + y:
        raise OverflowError("the power is too large")
    result = x**y
    if isinstance(result, complex):
        raise ValueError("a negative number has no such power")
    return result


OPERATORS: dict[str, Function] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "+": exactly(operator.add),
    "-": exactly(operator.sub),
    "*": exactly(_times),
    "/": exactly(operator.truediv),
    "//": exactly(operator.floordiv),
    "%": exactly(_modulo),
    "**": exact_power(_power),
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "both": lambda x, y: bool(x and y),
    "either": lambda x, y: bool(x or y),
    "not": lambda x: not x,
    "neg": operator.neg,
    "pos": operator.pos,
    "round": round,
    "indicator": lambda x: int(bool(x)),
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
}
CONSTANTS: dict[str, Callable[[Any, Any], bool]] = {"True": lambda x, y: True, "False": lambda x, y: False}
SIGNS = {"neg": "-", "pos": "+"}


class Printed:
    """A function whose text says what it does."""

    __slots__ = ()


@dataclass(frozen=True)
class BinaryOperator(Printed):
    """An operator between two s-ops, elementwise: `x < y`."""

    symbol: str

    def __call__(self, x: Value, y: Value) -> Any:
        """The operator's result on one pair of values."""
        return OPERATORS[self.symbol](x, y)

    def __str__(self) -> str:
        return f"x {self.symbol} y"


@dataclass(frozen=True)
class UnaryOperator(Printed):
    """`not x`, `-x`, `round x` and the like, elementwise."""

    symbol: str

    def __call__(self, x: Value) -> Any:
        return OPERATORS[self.symbol](x)

    def __str__(self) -> str:
        return f"{SIGNS[self.symbol]}x" if self.symbol in SIGNS else f"{self.symbol} x"


@dataclass(frozen=True)
class ConstantOperator(Printed):
    """An operator between an s-op and a constant: `x < 3`, or `3 - x` when `reflected`."""

    symbol: str
    constant: Value
    reflected: bool = False

    def __call__(self, x: Value) -> Any:
        """The operator's result on one value, the constant on its own side."""
        apply = OPERATORS[self.symbol]
        return apply(self.constant, x) if self.reflected else apply(x, self.constant)

    def __str__(self) -> str:
        return f"{self.constant!r} {self.symbol} x" if self.reflected else f"x {self.symbol} {self.constant!r}"


@dataclass(frozen=True)
class WeightedSum(Printed):
    """`first` times one value plus `second` times another."""

    first: Any
    second: Any

    def __call__(self, x: Any, y: Any) -> Any:
        return weighted_sum(self.first, x, self.second, y)

    def __str__(self) -> str:
        return f"{self.first!r} x + {self.second!r} y"


class Composition(Printed):
    """`f` after `inner`, stopping at `None`. It is a linked list: ten thousand of them do not recurse."""

    __slots__ = ("f", "inner")

    def __init__(self, inner: Function, f: Function) -> None:
        self.inner = inner
        self.f = f

    def __reduce__(self) -> tuple[Any, ...]:
        """The form that is pickled: a list, since `pickle` would recurse."""
        return _composed, (self.functions(),)

    def functions(self) -> list[Function]:
        """The composed functions, first applied first."""
        found: list[Function] = []
        link: Function = self
        while isinstance(link, Composition):
            found.append(link.f)
            link = link.inner
        return [link, *reversed(found)]

    def __call__(self, x: Value) -> Any:
        """Every function in turn; each result is checked as in a separate Map."""
        value: Any = x
        for function in self.functions():
            if value is None:
                return None
            value = as_value(function(value), where="an intermediate result")
        return value

    def __str__(self) -> str:
        functions = self.functions()
        names = [function_name(f) for f in functions[:3]]
        return " then ".join(names) + (f" then {len(functions) - 3} more" if len(functions) > 3 else "")


def _composed(functions: list[Function]) -> Function:
    return reduce(Composition, functions)


class Comparison(enum.Enum):
    """The built-in predicates of `Select`; called as `predicate(key, query)`, they refuse `None`.

    >>> Comparison.LT(1, 2)
    True
    """

    EQ = "=="
    NEQ = "!="
    LT = "<"
    LEQ = "<="
    GT = ">"
    GEQ = ">="
    TRUE = "True"
    FALSE = "False"

    def __init__(self, symbol: str) -> None:
        self._holds = CONSTANTS[symbol] if symbol in CONSTANTS else OPERATORS[symbol]

    def __call__(self, key: Value, query: Value) -> bool:
        """Whether the comparison holds; an error if either is `None`."""
        if key is None or query is None:
            raise ValueError(f"{self!s} got None (key={key!r}, query={query!r}); use a lambda that accepts it")
        return bool(self._holds(key, query))

    def __str__(self) -> str:
        return f"Comparison.{self.name}"


def function_name(function: Function) -> str:
    """The name of a function in messages: an operator's text, a def's name, or `<lambda>`."""
    if isinstance(function, Printed | Comparison):
        return str(function)
    return getattr(function, "__name__", None) or repr(function)
