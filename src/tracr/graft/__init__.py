"""Compiled parts inside trained models."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Injected", "inject"]

if TYPE_CHECKING:
    from tracr.graft.injection import Injected, inject
else:
    LAZY = {"Injected": "tracr.graft.injection", "inject": "tracr.graft.injection"}

    def __getattr__(name: str) -> Any:
        """Names imported on first use."""
        if name in LAZY:
            return getattr(importlib.import_module(LAZY[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
