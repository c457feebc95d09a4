"""A pytest plugin that runs at most `TRACR_CASES` cases of each parametrised test: `pytest -p few_cases`.

It takes the first cases of each test. `tools/coverage_report.py --cases` uses it.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the further cases of each test."""
    most, seen = int(os.environ["TRACR_CASES"]), Counter[str]()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        seen[test] += 1
        (kept if seen[test] <= most else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
