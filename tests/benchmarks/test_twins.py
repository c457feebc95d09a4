"""The page on natural models shows the results of benchmarks/twins.py as they are in the file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[2]


def test_the_tables_of_the_page_are_those_of_the_files() -> None:
    page = (ROOT / "docs/natural.md").read_text()
    for table in ("--table", "--compare"):
        command = [sys.executable, "benchmarks/twins.py", "-o", "docs/natural", table]
        assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout in page
    rows = json.loads((ROOT / "docs/natural/results.json").read_text())
    admitted = [row for row in rows if row["admitted"]]
    assert f"{len(admitted)} of {len(rows)} twins are admitted" in page
    assert all(row["auroc"] == 1 for row in admitted if row["needed"] and row["inert"])
