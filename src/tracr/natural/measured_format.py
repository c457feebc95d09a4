"""Refuses the number formats in which a trained model was not measured."""

from __future__ import annotations

from typing import Any

from tracr.errors import PrecisionError
from tracr.model.number_formats import LONG, format_of

__all__ = ["require_measured"]


def require_measured(dtype: Any, what: str) -> None:
    """Refuse formats shorter than float32; `what` is the model, in words."""
    name = dtype if isinstance(dtype, str) else format_of(dtype)
    if name not in LONG:
        raise PrecisionError(
            f"{what} was measured in float32; nothing is known about it in {name}",
            hint="use float32; to study it anyway, pass check=False",
        )
