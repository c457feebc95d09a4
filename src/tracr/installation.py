"""Whether the files of this package are its own.

The original Tracr is on PyPI as `tracr-pypi` and has the same folder, `tracr`. Installed after this package it replaces
`tracr/__init__.py` and others; uninstalled, it removes them. What is left of this package then says so: `tracr.errors`,
which its other modules import, and the command `tracr`.
"""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["REMEDY", "SHARED", "files_replaced", "shared_folder"]

OTHER = "tracr_pypi-"  # how pip names the folder of its metadata
REMEDY = "install this package again, with --force-reinstall --no-deps added to the `pip install` command you used"
SHARED = (
    "tracr-pypi, the original Tracr, is installed in the same folder as this package, tracr. This package was "
    "installed last and works. Uninstalling or upgrading tracr-pypi removes files of it; after that, " + REMEDY
)
"""The warning where both are installed, this package last."""


def files_replaced() -> bool:
    """Whether the imported `tracr/__init__.py` is not this package's, or missing."""
    package = sys.modules.get("tracr")
    return getattr(package, "__distribution__", None) != "tracr"


def shared_folder(folder: Path | None = None) -> bool:
    """Whether `tracr-pypi` is installed beside this package; `folder` holds the installed packages."""
    folder = Path(__file__).parents[1] if folder is None else folder
    try:
        return any(entry.name.startswith(OTHER) for entry in folder.iterdir())
    except OSError:  # inside a zip file
        return False
