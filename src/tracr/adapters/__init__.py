"""Compiled models in other frameworks, one file each; a framework is imported only when its adapter is used."""

from __future__ import annotations

import importlib
from typing import Any

from tracr.errors import MissingExtra
from tracr.extras import need

__all__ = ["adapter"]

NEEDS = {  # by adapter: its library, and the extra that installs it
    "jax": ("jax", "jax"),
    "torch": ("torch", "torch"),
    "transformer_lens": ("transformer_lens", "lens"),
    "onnx": ("onnx", "onnx"),
}


def adapter(name: str) -> Any:
    """The module of an adapter, if its library is installed."""
    library, extra = NEEDS[name]
    need(library, extra)
    try:
        return importlib.import_module(f"tracr.adapters.{name}")
    except ImportError as error:
        raise MissingExtra(
            f"the installed {library} cannot be used: {error}", hint=f"pip install -U 'tracr[{extra}]'"
        ) from error
