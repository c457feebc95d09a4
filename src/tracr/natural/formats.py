"""The number formats of a twin: it is measured in float32, and wider formats change its answers by rounding only."""

from __future__ import annotations

from typing import Any

from tracr.errors import PrecisionError
from tracr.model.number_formats import LONG, format_of

__all__ = ["require_format"]


def require_format(dtype: Any) -> None:
    """Refuse a number format in which no twin was measured."""
    name = dtype if isinstance(dtype, str) else format_of(dtype)
    if name not in LONG:
        raise PrecisionError(
            f"the twin was measured in float32; nothing is known about it in {name}",
            hint="use float32; to study it anyway, pass check=False",
        )
