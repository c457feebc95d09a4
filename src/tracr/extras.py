"""Optional libraries: imported when used, with an error that says how to install a missing one."""

from __future__ import annotations

import importlib
from typing import Any

from tracr.errors import MissingExtra

__all__ = ["need"]


def need(module: str, extra: str = "") -> Any:
    """Import a module, or say which extra installs it; without an extra, the module is a dependency of tracr itself."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise  # the module is installed, but one of its own dependencies is not
        command = f"pip install 'tracr[{extra}]'" if extra else f"pip install {error.name}"
        raise MissingExtra(f"this needs {error.name}", hint=command) from None
