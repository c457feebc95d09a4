"""Settings of all tests: which examples Hypothesis draws, and test files that cannot be imported are errors."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

# The same examples on every run and every machine, unless TRACR_RANDOM is set (`make hunt`, docs/extending.md). No
# deadlines: how long an example takes says more of the machine than of the code.
settings.register_profile("fixed", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("random" if os.environ.get("TRACR_RANDOM") else "fixed")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, Any, Any]:
    """Look for doctests in the package only.

    In a test file they would be collected first. A failed import then counts as skipped, because of
    `--doctest-ignore-import-errors`, and leaves an empty module behind in which no test is found.
    """
    collectors = yield
    return [collector for collector in collectors if type(collector).__name__ != "DoctestModule"]
