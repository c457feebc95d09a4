"""A user's path, from docs/lab.md alone: a method in a file, private cases, scores recomputed from the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.calling import run as run_here

parquet = pytest.importorskip("pyarrow.parquet")
metrics = pytest.importorskip("sklearn.metrics")

METHOD = '''
"""Prefers edges whose writer moves far between the clean and the corrupted input; later readers first."""

import numpy as np

from tracr.lab.methods.passes import both_passes


def moving(subject, data, rounded=1):
    both = both_passes(subject, data)
    moved = {name: np.abs(both.corrupted.written[name] - output).mean() for name, output in both.clean.written.items()}
    return {(writer, reader): round(float(moved[writer]), rounded) for writer, reader in subject.candidates
            if reader != "unembed" or writer != "embed"}


def as_set(subject, data):
    return {key for key in subject.candidates if key[1].endswith((".q", ".k", "unembed"))}
'''


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of a run on private cases."""
    folder: Path = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(METHOD)
    shown = run_here("lab", "run", "--methods", f"{folder}/mine.py:moving:rounded=2,{folder}/mine.py:as_set,exact",
                     "--cases", "private:41:2", "--realisations", "compiled,rotated,two_programs", "--pairs", "24",
                     "--seeds", "0-1", "-o", str(folder / "out"))  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    found: list[dict[str, Any]] = parquet.read_table(folder / "out" / "results.parquet").to_pylist()
    return found


def test_the_table_has_all_rows(rows: list[dict[str, Any]]) -> None:
    """Three methods on three realisations of two cases, with two seeds."""
    assert len(rows) == 3 * 3 * 2 * 2
    assert {row["case"] for row in rows} == {f"private-41-{number}" for number in range(2)}
    assert all(row["auroc"] in (1, None) for row in rows if row["method"] == "exact" and row["metric"] == "answers")


def test_scores_are_those_of_scikit_learn(rows: list[dict[str, Any]]) -> None:
    """AUROC and average precision of needed against inert edges; edges without a number rank below all others."""
    compared = 0
    for row in rows:
        scored = [place for place, kind in enumerate(row["truth"]) if kind != "jointly"]
        needed = np.array([row["truth"][place] == "alone" for place in scored])
        given = [row["numbers"][place] for place in scored]
        lowest = min((one for one in given if one is not None), default=0.0) - 1
        numbers = np.array([lowest if one is None else one for one in given])
        if needed.all() or not needed.any():
            assert row["auroc"] is None
            continue
        assert row["auroc"] == pytest.approx(metrics.roc_auc_score(needed, numbers))
        assert row["average_precision"] == pytest.approx(metrics.average_precision_score(needed, numbers))
        assert (row["alone"], row["inert"]) == (needed.sum(), (~needed).sum())
        compared += 1
    assert compared > 25
