"""The speed of sampling: the page has the numbers of the data."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

DATA = Path("docs/benchmarks/sampling.json")
PAGE = Path("docs/datasets.md")


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, which is no part of a package."""
    monkeypatch.syspath_prepend("benchmarks")
    import sampling_speed

    return sampling_speed


def test_the_page_has_the_measured_numbers(speed: ModuleType) -> None:
    """The table of the page is that of the data."""
    measured = speed.table(json.loads(DATA.read_text(encoding="utf-8")))
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(speed.HEAD)
    assert lines[start : start + len(measured) + 1] == [*measured, ""]


def test_a_table_is_filled_in(speed: ModuleType, tmp_path: Path) -> None:
    """Only the table changes; two processors make twice the programs of one in a second of its time."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{speed.HEAD}\n|---|---|---|---|\n| old | 1 | 2 | 3 |\n\nafter\n", encoding="utf-8")
    row = {"way": "a way", "programs": 100, "processor_seconds": 0.5, "clock_seconds": 2.0}
    speed.fill(page, {"measured": [row]})
    assert page.read_text(encoding="utf-8").splitlines() == [
        "before",
        "",
        speed.HEAD,
        "|---|---|---|---|",
        "| a way | 5.0 ms | 400 a second | 50 a second |",
        "",
        "after",
    ]
