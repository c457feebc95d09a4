"""Values as JSON, without loss: a value of a type that JSON lacks is an object with one key, the type.

str, bool, None, int, float     themselves (an integer from 2**53 on: {"int": "0x..."})
Fraction                        {"fraction": [numerator, denominator]}
Decimal                         {"decimal": its text}
complex                         {"complex": [real, imaginary]}
tuple                           {"tuple": [...]}
frozenset                       {"frozenset": [...]}, sorted by their JSON text
bytes                           {"bytes": base64}
str with lone surrogates        {"str": base64 of its UTF-8, surrogates passed}
"""

from __future__ import annotations

import base64
import binascii
import cmath
import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from tracr.errors import FormatError
from tracr.values import Value

__all__ = ["decode_value", "encode_value"]

SAFE_INTEGER = 2**53  # other JSON readers lose digits of larger integers
DEEPEST = 100


def encode_value(value: Value, depth: int = 0) -> Any:
    """A value as an object that `json` can write.

    >>> encode_value(("a", 1, (True, None), b"x"))
    {'tuple': ['a', 1, {'tuple': [True, None]}, {'bytes': 'eA=='}]}
    """
    if depth > DEEPEST:
        raise FormatError(
            f"a value is nested more than {DEEPEST} deep, which cannot be saved", hint="use flatter tuples"
        )
    kind = type(value)  # not isinstance: a subclass can have another meaning
    if kind in _TO_JSON and not (kind in _FINITE and not _FINITE[kind](value)):
        return _TO_JSON[kind](value)
    if kind in (tuple, frozenset):
        elements = [encode_value(element, depth + 1) for element in cast(Iterable[Value], value)]
        return {kind.__name__: elements if kind is tuple else sorted(elements, key=json.dumps)}
    raise FormatError(
        f"the value {value!r} of type {kind.__qualname__} cannot be saved",
        hint="map it to str, int, float, bool, None, bytes, Fraction, a finite Decimal or complex number, "
        "or a tuple or frozenset of these",
    )


def decode_value(data: Any, depth: int = 0) -> Value:
    """The inverse of `encode_value`; `FormatError` for anything that `encode_value` does not write.

    >>> decode_value({"tuple": ["a", 1.0, {"int": "0x20000000000000"}]})
    ('a', 1.0, 9007199254740992)
    """
    if depth > DEEPEST:
        raise FormatError(f"a value is nested more than {DEEPEST} deep")
    if data is None or isinstance(data, str | int) or (isinstance(data, float) and math.isfinite(data)):
        return data
    if isinstance(data, dict) and len(data) == 1:
        ((kind, content),) = data.items()
        if kind in ("tuple", "frozenset") and isinstance(content, list):
            elements = tuple(decode_value(element, depth + 1) for element in content)
            return elements if kind == "tuple" else frozenset(elements)
        with suppress(ValueError, TypeError, KeyError, ArithmeticError, binascii.Error):
            return _scalar(kind, content, depth)
    shown = json.dumps(data)
    raise FormatError(f"{shown if len(shown) < 80 else shown[:80] + '...'} is not a value")


def _scalar(kind: str, content: Any, depth: int) -> Value:
    """A value of a type that is written as a text or a pair; an error for any other content."""
    if kind in _FROM_TEXT and isinstance(content, str):
        return _FROM_TEXT[kind](content)
    first, second = content
    return _FROM_PAIR[kind](decode_value(first, depth + 1), decode_value(second, depth + 1))


def _text(value: str) -> Any:
    lone = any("\ud800" <= character <= "\udfff" for character in value)
    return {"str": _base64(value.encode("utf-8", "surrogatepass"))} if lone else value


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)


def _complex(real: Any, imaginary: Any) -> complex:
    if not all(type(part) in (int, float) for part in (real, imaginary)):
        raise TypeError("the parts of a complex number are real numbers")
    return complex(real, imaginary)


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError("not a finite number")
    return number


_FINITE: dict[type, Callable[[Any], bool]] = {
    float: math.isfinite,
    complex: cmath.isfinite,
    Decimal: Decimal.is_finite,
}
_TO_JSON: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    int: lambda value: value if abs(value) < SAFE_INTEGER else {"int": hex(value)},
    float: lambda value: value,
    str: _text,
    bytes: lambda value: {"bytes": _base64(value)},
    Fraction: lambda value: {"fraction": [encode_value(value.numerator), encode_value(value.denominator)]},
    Decimal: lambda value: {"decimal": str(value)},
    complex: lambda value: {"complex": [value.real, value.imag]},
}
_FROM_PAIR: dict[str, Callable[[Any, Any], Value]] = {"fraction": Fraction, "complex": _complex}
_FROM_TEXT: dict[str, Callable[[str], Value]] = {
    "decimal": _decimal,
    "int": lambda text: int(text, 16),
    "bytes": _bytes,
    "str": lambda text: _bytes(text).decode("utf-8", "surrogatepass"),
}
