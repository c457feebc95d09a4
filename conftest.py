"""Forgets modules whose doctests were skipped because a library is missing."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "src"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Collect; where an import failed, drop the module, which pytest leaves in `sys.modules` without its names."""
    report = yield
    if report.skipped and isinstance(collector, pytest.File) and SOURCE in collector.path.parents:
        sys.modules.pop(".".join(collector.path.relative_to(SOURCE).with_suffix("").parts), None)
    return report
