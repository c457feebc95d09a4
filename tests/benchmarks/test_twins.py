"""The scripts that train twins, and the page that shows their results as they are in the file."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracr.natural.admission import Admission, Rate
from tracr.natural.architecture import architecture_of
from tracr.natural.cases import case_of

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


def script(name: str) -> ModuleType:
    """A benchmark, imported."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_finished_rows_have_the_steps_and_devices_of_both_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the second training changes nothing and admits one of two seeds; the other rows stay as they were."""
    checkpoint = pytest.importorskip("tracr.natural.checkpoint")
    import numpy as np

    twins = script("twins")
    model = case_of("count").load()
    shapes = architecture_of(model, 64, 16, 128, layer_norm=True, activation="gelu").shapes(model)
    means = {
        name: np.stack([np.full(shape, seed, dtype=np.float32) for seed in (0, 1, 2)]) for name, shape in shapes.items()
    }
    monkeypatch.setattr(checkpoint.Checkpoint, "means", lambda folder, names: (means, 700))
    seen: list[float] = []

    def finish(given: list[Any], **settings: Any) -> list[Any]:
        seen.extend(float(twin.parameters.W_U.mean()) for twin in given)
        measured = [Admission(Rate(hits, 10), every_input=True, sites=()) for hits in (10, 0)]
        return [replace(one, admission=found, steps=one.steps + 50) for one, found in zip(given, measured, strict=True)]

    monkeypatch.setattr(twins.natural, "finish", finish)
    rows = [{"program": "count", "seed": seed, "batch": 384, "device": "GPU", "seconds": 9.0} for seed in (0, 1, 2)]
    (tmp_path / "rows").mkdir()
    file = twins.row_file(tmp_path, "count")
    twins.write(file, rows)
    twins.finish("count", [1, 2], Namespace(out=tmp_path, steps=100, batch=64, each_seconds=None, until=None))
    found = json.loads(file.read_text())
    assert seen == [1, 2]
    assert found[0] == rows[0]
    assert [row["admitted"] for row in found[1:]] == [True, False]
    for row in found[1:]:
        assert (row["steps"], row["most_steps"], row["finish steps"]) == (750, 800, 50)
        assert (row["device"], row["batch"], row["seconds"]) == ("GPU", 384, 9.0)
        assert row["finish batch"] == 64
        assert row["finish device"]
    assert [(tmp_path / f"count-{seed}").exists() for seed in (1, 2)] == [True, False]


def test_starts_are_compared_seed_by_seed() -> None:
    """A start that is not admitted is slower than one that is; equal rounds are not fewer."""
    runs = {"random": [2, 3, None, None], "compiled": [1, 3, 1, None]}
    rows = [
        {"program": "p", "start": start, "admitted": rounds is not None, "steps": rounds or 4, "most_steps": 4}
        for start, several in runs.items()
        for rounds in several
    ]
    found = script("twin_starts").table(rows)
    assert "| p | 2, 3, not, not | 1, 3, 1, not |" in found
    assert "2 of 4, 0.5000 [0.0676, 0.9324] of 4" in found
