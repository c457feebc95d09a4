"""The first report: its sentences say what its tables say, and the tables what the rows say."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "docs/lab/first-report"
ESTIMATE = re.compile(r"(\d\.\d{3})\s+\[(\d\.\d{3}),\s+(\d\.\d{3})\]")


def estimates() -> set[tuple[str, ...]]:
    """Every mean with its interval in the tables, without signs, to three digits."""
    found = set()
    for table in sorted((FOLDER / "tables").glob("*.csv")):
        for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
            for name in row:
                if name.endswith(" mean") and row[name]:
                    stem = name.removesuffix("mean")
                    found.add(tuple(f"{abs(float(row[stem + end])):.3f}" for end in ("mean", "low", "high")))
    return found


def test_every_interval_of_the_text_is_in_a_table() -> None:
    said = ESTIMATE.findall((FOLDER / "notes.md").read_text(encoding="utf-8"))
    assert len(said) > 15
    assert set(said) <= estimates()


def test_scores_are_those_of_the_rows() -> None:
    """AUROC by its definition, for a sample of the rows."""
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = ["status", "auroc", "truth", "numbers", "as_set", "case", "realisation", "method"]
    rows = parquet.read_table(FOLDER / "results.parquet", columns=columns).to_pylist()
    assert len({row["case"] for row in rows}) >= 60
    assert {"compiled", "softened", "superposed", "twin"} <= {row["realisation"] for row in rows}
    done = [row for row in rows if row["status"] == "done" and None not in row["numbers"]]
    for row in done[::37]:
        kinds, numbers = np.array(row["truth"]), np.array(row["numbers"], dtype=float)
        needed, inert = numbers[kinds == "alone"], numbers[kinds == "inert"]
        better = (needed[:, None] > inert).mean() + 0.5 * (needed[:, None] == inert).mean()
        assert row["auroc"] == pytest.approx(better, abs=1e-9), (row["case"], row["method"])
