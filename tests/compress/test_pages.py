"""The tables on the pages on compression are those of the data beside them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

ROOT = Path(__file__).resolve().parents[2]


tables = runpy.run_path(str(ROOT / "benchmarks" / "compression_tables.py"))
data = runpy.run_path(str(ROOT / "benchmarks" / "compression_data.py"))
sentences = runpy.run_path(str(ROOT / "benchmarks" / "compression_sentences.py"))


@pytest.mark.parametrize("page", tables["PAGES"], ids=lambda page: page.stem)
def test_tables_are_those_of_the_data(page: Path) -> None:
    """Every table is what its rows give, and none is empty."""
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"<!-- table (.*?) -->", text)
    assert names
    assert tables["filled"](text) == text


@pytest.mark.parametrize("page", sentences["PHRASES"], ids=lambda page: page.stem)
def test_numbers_in_the_text_are_those_of_the_data(page: Path) -> None:
    """Every phrase whose numbers are computed is on its page."""
    assert sentences["lacking"](page) == []


def test_each_run_is_there_once() -> None:
    """The paper's study has every dim, seed and rerun once."""
    for program, dims in (("frac_prevs", range(2, 15)), ("sort_unique", (4, 5, 6, 7, *range(8, 21, 2)))):
        found = [(row["dim"], row["seed"], row["rerun"]) for row in data["chosen"]("paper", program=program)]
        assert sorted(found) == sorted((dim, seed, rerun) for dim in dims for seed in range(32) for rerun in range(3))


def test_an_interval_covers_its_median_and_narrows_with_runs() -> None:
    """The bootstrap on normal numbers: about two standard errors, wider if reruns differ."""
    rng, interval = np.random.default_rng(0), data["interval"]
    rows = [{"rerun": n % 3, "x": float(x)} for n, x in enumerate(rng.normal(size=300))]
    middle, low, high = interval(rows, "x")
    assert low < middle < high
    assert 0.15 < high - low < 0.6
    apart = [row | {"x": row["x"] + 3 * row["rerun"]} for row in rows]
    assert interval(apart, "x")[2] - interval(apart, "x")[1] > 2 * (high - low)
    uneven = [row for row in rows if row["rerun"] or row["x"] > 0]
    assert interval(uneven, "x")[1] < interval(uneven, "x")[0] < interval(uneven, "x")[2]
