"""A separate environment for the original, which has the same import name as this package."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

__all__ = ["MissingOriginal", "original_python", "versions"]

PACKAGE = "tracr-pypi==1.0.0"
SHOWN = ("tracr-pypi", "jax", "jaxlib", "dm-haiku", "numpy")


class MissingOriginal(Exception):
    """The original could not be installed."""


def original_python(folder: Path | None = None) -> Path:
    """The Python of an environment with the original: made once, in a temporary folder unless one is given."""
    place = folder or Path(tempfile.gettempdir()) / f"tracr-original-{sys.version_info.major}.{sys.version_info.minor}"
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    installed = place / ".installed"
    if installed.is_file() and python.exists():
        return python
    venv.create(place, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise MissingOriginal(f"pip could not install {PACKAGE}: {reason}")
    installed.touch()
    return python


def versions(python: Path) -> dict[str, str]:
    """The versions of Python and of the packages that the original uses."""
    program = (
        "import importlib.metadata as m, json, platform; "
        f"print(json.dumps({{'python': platform.python_version(), **{{n: m.version(n) for n in {SHOWN!r}}}}}))"
    )
    found = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=True)
    return dict(json.loads(found.stdout))
