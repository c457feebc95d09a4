"""`tracr playground`: what it says before it serves."""

from __future__ import annotations

import sys
from unittest import mock

from tests.cli.calling import run


def test_a_missing_library_is_named() -> None:
    """With the extra that installs it."""
    with mock.patch.dict(sys.modules, {"starlette": None}):
        done = run("playground")
    assert done.returncode == 1
    assert "pip install 'tracr[web]'" in done.stderr


def test_too_little_memory_is_refused() -> None:
    """A worker could not even start."""
    done = run("playground", "--memory", "64MB")
    assert done.returncode == 2
    assert "256MB" in done.stderr
