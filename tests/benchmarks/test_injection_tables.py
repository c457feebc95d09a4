"""The tables of docs/injecting.md are those of its results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks can be imported."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))


def test_the_tables_of_the_page_are_those_of_the_file() -> None:
    """Answers, what changes elsewhere, freed places, and further training: every row."""
    import injection_tables

    docs = Path(__file__).parents[2] / "docs"
    found = json.loads((docs / "injecting" / "results.json").read_text())
    page = (docs / "injecting.md").read_text()
    for table in injection_tables.tables(found):
        assert f"\n\n{table}\n\n" in page
    assert found["same_text_as_host"] is True
    assert all(one["after"]["right"] == one["after"]["asked"] == 200 for one in found["injections"] + found["unused"])


def test_wilson() -> None:
    """All of 200, none of 180, and half."""
    from injection_tables import wilson

    assert [round(one, 4) for one in wilson(200, 200)] == [0.9812, 1.0]
    assert [round(one, 4) for one in wilson(0, 180)] == [0.0, 0.0209]
    low, high = wilson(50, 100)
    assert low + high == pytest.approx(1.0)
