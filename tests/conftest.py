"""Settings of all tests: no deadlines for Hypothesis, and test files that cannot be imported are errors."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, Any, Any]:
    """Look for doctests in the package only.

    In a test file they would be collected first. A failed import then counts as skipped, because of
    `--doctest-ignore-import-errors`, and leaves an empty module behind in which no test is found.
    """
    collectors = yield
    return [collector for collector in collectors if type(collector).__name__ != "DoctestModule"]
