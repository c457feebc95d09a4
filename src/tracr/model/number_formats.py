"""Formats of floating-point numbers: float32 and float64, for which models are made, and shorter ones."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracr.errors import InputError
from tracr.values import short_repr

__all__ = ["LONG", "SHORT", "Format", "format_of"]


@dataclass(frozen=True)
class Format:
    """Numbers of `bits` significant bits up to `largest`; neighbours near 0 differ by 2**`lowest`."""

    name: str
    bits: int
    largest: float
    lowest: int

    @property
    def roundoff(self) -> float:
        """The largest relative error of one rounding."""
        return 2.0**-self.bits

    @property
    def smallest(self) -> float:
        """The distance between neighbours near 0."""
        return 2.0**self.lowest


LONG = ("float32", "float64")
"""Models are right in these."""

SHORT = {
    short.name: short
    for short in (
        Format("float16", 11, 65504.0, -24),
        Format("bfloat16", 8, float(np.finfo(np.float32).max) * (1 - 2.0**-8), -126),  # smaller numbers may become 0
        Format("tf32", 10, float(np.finfo(np.float32).max), -126),  # of 11 bits, the last perhaps cut off, not rounded
    )
}


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
