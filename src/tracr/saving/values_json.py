"""Values as JSON, exactly: what JSON has no word for is an object with one key, its type.

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
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tracr.errors import FormatError
from tracr.values import Value

__all__ = ["decode_value", "encode_value"]

SAFE_INTEGER = 2**53  # beyond, other readers of JSON lose digits
DEEPEST = 100


def encode_value(value: Value, depth: int = 0) -> Any:
    """A value as something `json` can write.

    >>> encode_value(("a", 1, (True, None), b"x"))
    {'tuple': ['a', 1, {'tuple': [True, None]}, {'bytes': 'eA=='}]}
    """
    if depth > DEEPEST:
        raise FormatError(
            f"a value is nested more than {DEEPEST} deep, which cannot be saved", hint="use flatter tuples"
        )
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, int) and kind is int:
        return value if abs(value) < SAFE_INTEGER else {"int": hex(value)}
    if isinstance(value, float) and kind is float and math.isfinite(value):
        return value
    if isinstance(value, str) and kind is str:
        lone = any("\ud800" <= character <= "\udfff" for character in value)
        return {"str": _base64(value.encode("utf-8", "surrogatepass"))} if lone else value
    if isinstance(value, bytes) and kind is bytes:
        return {"bytes": _base64(value)}
    if isinstance(value, Fraction) and kind is Fraction:
        return {"fraction": [encode_value(value.numerator), encode_value(value.denominator)]}
    if isinstance(value, Decimal) and kind is Decimal and value.is_finite():
        return {"decimal": str(value)}
    if isinstance(value, complex) and kind is complex and cmath.isfinite(value):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, tuple) and kind is tuple:
        return {"tuple": [encode_value(element, depth + 1) for element in value]}
    if isinstance(value, frozenset) and kind is frozenset:
        return {"frozenset": sorted((encode_value(element, depth + 1) for element in value), key=json.dumps)}
    raise FormatError(
        f"the value {value!r} of type {kind.__qualname__} cannot be saved",
        hint="values that can be are str, int, float, bool, None, bytes, Fraction, finite Decimal and complex numbers, "
        "and tuples and frozensets of them; map others to one of these",
    )


def decode_value(data: Any, depth: int = 0) -> Value:
    """The value `encode_value` was given; `FormatError` for anything it does not write.

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
        try:
            if kind in _FROM_TEXT and isinstance(content, str):
                return _FROM_TEXT[kind](content)
            if kind in _FROM_PAIR and isinstance(content, list) and len(content) == 2:
                return _FROM_PAIR[kind](*(decode_value(part, depth + 1) for part in content))
        except (ValueError, TypeError, ArithmeticError, binascii.Error):
            pass
    shown = json.dumps(data)
    raise FormatError(f"{shown if len(shown) < 80 else shown[:80] + '...'} is not a value")


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


_FROM_PAIR: dict[str, Callable[[Any, Any], Value]] = {"fraction": Fraction, "complex": _complex}
_FROM_TEXT: dict[str, Callable[[str], Value]] = {
    "decimal": _decimal,
    "int": lambda text: int(text, 16),
    "bytes": _bytes,
    "str": lambda text: _bytes(text).decode("utf-8", "surrogatepass"),
}
