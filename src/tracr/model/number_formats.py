"""Formats of floating-point numbers: the two that models are made for, and shorter ones."""

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
    """Numbers of `bits` significant bits up to `largest`; the smallest ones are 2**`lowest` apart."""

    name: str
    bits: int
    largest: float
    lowest: int

    @property
    def roundoff(self) -> float:
        """What one rounding changes, relative to the number."""
        return 2.0**-self.bits

    @property
    def smallest(self) -> float:
        """The distance of the smallest numbers."""
        return 2.0**self.lowest


LONG = ("float32", "float64")
"""Models are right in these."""

SHORT = {
    short.name: short
    for short in (
        Format("float16", 11, 65504.0, -24),
        Format("bfloat16", 8, float(np.finfo(np.float32).max) * (1 - 2.0**-8), -126),  # smaller ones may become 0
        Format("tf32", 10, float(np.finfo(np.float32).max), -126),  # of 11 bits, the last perhaps cut off, not rounded
    )
}


def format_of(dtype: Any) -> str:
    """The name of a type that weights can have, from a name, or a type of numpy, torch or JAX.

    >>> format_of(np.float32), format_of("bfloat16")
    ('float32', 'bfloat16')
    """
    name = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    if name not in (*LONG, *SHORT):
        with contextlib.suppress(Exception):  # numpy raises several
            name = np.dtype(dtype).name
    if name in (*LONG, *SHORT) and name != "tf32":
        return name
    raise InputError(f"{short_repr(dtype)} is not a type weights could have", hint="pass float32 or float64")
