"""Formats of floating-point numbers: float32 and float64, for which models are made, and shorter ones."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from tracr.craft.formats import SHORT, Format
from tracr.errors import InputError
from tracr.values import short_repr

__all__ = ["LONG", "SHORT", "Format", "format_of"]

LONG = ("float32", "float64")
"""Models are right in these."""


def format_of(dtype: Any) -> str:
    """The name of a floating-point type of weights, from a name, or a type of numpy, torch or JAX.

    >>> format_of(np.float32), format_of("bfloat16")
    ('float32', 'bfloat16')
    """
    name = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    if name not in (*LONG, *SHORT):
        with contextlib.suppress(Exception):  # numpy raises several types of error
            name = np.dtype(dtype).name
    if name in (*LONG, *SHORT) and name != "tf32":
        return name
    raise InputError(f"{short_repr(dtype)} is not a type weights could have", hint="pass float32 or float64")
