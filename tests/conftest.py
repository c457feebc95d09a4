"""Settings of all tests: which examples Hypothesis draws, how long slow tests may take in all, no doctests in tests."""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest
from hypothesis import settings

# The same examples on every run and every machine, unless TRACR_RANDOM is set (`make hunt`, docs/extending.md). No
# deadlines: how long an example takes says more of the machine than of the code.
settings.register_profile("fixed", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("random" if os.environ.get("TRACR_RANDOM") else "fixed")

LAST_START = time.monotonic() + 60 * float(os.environ.get("TRACR_MINUTES", "inf"))


OPTIONAL = re.compile(r"^(?:\w+ = )?pytest\.importorskip\(", re.MULTILINE)  # for all tests of a module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that ask for an optional library: quick ones run where `make slow` has installed it."""
    for item in items:
        if isinstance(item, pytest.Function) and (OPTIONAL.search(_source(item.module)) or _asks(item)):
            item.add_marker(pytest.mark.optional)


def _asks(item: pytest.Function) -> bool:
    """Whether a test, or a fixture of it, may be skipped because a library is missing."""
    fixtures = (one.func for found in item._fixtureinfo.name2fixturedefs.values() for one in found)
    return any("importorskip(" in _source(one) for one in (item.function, *fixtures))


@cache
def _source(of: Any) -> str:
    return inspect.getsource(of)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out slow tests that would begin after TRACR_MINUTES: CI has an end, and machines differ in speed."""
    if time.monotonic() >= LAST_START and item.get_closest_marker("slow"):
        pytest.skip(f"no time left: {os.environ['TRACR_MINUTES']} minutes (TRACR_MINUTES) are over")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, Any, Any]:
    """Look for doctests in the package only.

    In a test file they would be collected first. A failed import then counts as skipped, because of
    `--doctest-ignore-import-errors`, and leaves an empty module behind in which no test is found.
    """
    collectors = yield
    return [collector for collector in collectors if type(collector).__name__ != "DoctestModule"]
