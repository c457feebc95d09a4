"""Optional libraries: imported where they are asked for, with an error that says how to install what is missing."""

from __future__ import annotations

import importlib
from typing import Any

from tracr.errors import MissingExtra

__all__ = ["need"]


def need(module: str, extra: str = "") -> Any:
    """Import a module, or say which extra brings it; without an extra it is one that tracr itself depends on."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise  # the module is there; something it needs itself is not
        command = f"pip install 'tracr[{extra}]'" if extra else f"pip install {error.name}"
        raise MissingExtra(f"this needs {error.name}", hint=command) from None
