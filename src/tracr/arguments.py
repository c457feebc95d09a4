"""Checks for arguments of public functions: an argument of the wrong kind gives an error that names it."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tracr.errors import TracrError
from tracr.values import short_repr

__all__ = ["as_list", "flag", "function", "number", "one_of", "path", "text", "whole"]

Error = type[TracrError]


def whole(name: str, value: Any, low: int = 0, *, most: int | None = None, error: Error = TracrError) -> int:
    """An integer from `low` up, to `most` if there is a limit.

    >>> whole("seed", np.int64(3))
    3
    """
    if not isinstance(value, bool | np.bool_) and hasattr(value, "__index__"):
        try:
            found = operator.index(value)
        except TypeError:  # an array of several numbers, or of fractions
            found = low - 1
        if found >= low and (most is None or found <= most):
            return found
    kind = "a positive integer" if low == 1 else f"an integer from {low} on"
    kind = kind if most is None else f"an integer from {low} to {most:,}"
    raise error(f"{name} must be {kind}, not {short_repr(value)}", hint=f"write {name}={max(low, 1)}, for example")


def number(
    name: str, value: Any, *, above: float = -math.inf, low: float = -math.inf, error: Error = TracrError
) -> float:
    """A finite number, larger than `above` and at least `low`.

    >>> number("scale", 1, low=0)
    1.0
    """
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.nan
        if math.isfinite(found) and found > above and found >= low:
            return found
    kind = "a positive number" if above == 0 else f"a number from {low:g} on" if low > -math.inf else "a finite number"
    raise error(f"{name} must be {kind}, not {short_repr(value)}", hint=f"write {name}=1.0, for example")


def flag(name: str, value: Any, *, error: Error = TracrError) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise error(f"{name} must be True or False, not {short_repr(value)}", hint=f"write {name}=True or {name}=False")
    return bool(value)


def function(name: str, value: Any, *, error: Error = TracrError) -> Any:
    """A function, or `None`."""
    if value is not None and not callable(value):
        raise error(f"{name} must be a function, not {short_repr(value)}", hint=f"define one, or leave {name} out")
    return value


def as_list(name: str, value: Any, *, error: Error = TracrError) -> list[Any]:
    """The items of a list or a similar sequence."""
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        try:
            return list(value)
        except TypeError:  # an array without dimensions
            pass
    raise error(f"{name} must be a list, not {short_repr(value)}", hint=f"write {name}=[...]")


def text(name: str, value: Any, *, error: Error = TracrError) -> str:
    """A string."""
    if not isinstance(value, str):
        raise error(f"{name} must be a string, not {short_repr(value)}", hint=f'write {name}="x", for example')
    return value


def one_of(name: str, value: Any, choices: Iterable[str], *, error: Error = TracrError) -> str:
    """One of a few strings."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise error(f"there is no {name} {short_repr(value)}", hint=f"{name}s are {', '.join(known)}")
    return value


def path(name: str, value: Any, *, error: Error = TracrError) -> Path:
    """A path to a file or a folder."""
    try:
        found = Path(os.fsdecode(value))
    except TypeError:
        found = Path()
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or "\0" in str(found):
        raise error(f"{name} must be a path, not {short_repr(value)}", hint=f'write {name}="models/hist", for example')
    return found
