"""The study of features: its rows are those of `tracr lab run`, and a second run does nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tracr import lab

pytestmark = pytest.mark.slow


def test_rows_are_those_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same keys, and the same scores; a second study finds everything."""
    for library in ("optax", "pyarrow"):
        pytest.importorskip(library)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import feature_study

    grid = replace(
        feature_study.GRIDS["small"],
        programs=range(1),
        features=8,
        tokens=24,
        densities=(0.1,),
        ratios=(1.5,),
        widths=(1.0,),
        sparsities={"topk": (2,)},
        steps=30,
    )
    feature_study.run(grid, tmp_path / "study", 1)
    feature_study.table(tmp_path / "study")
    (row,) = lab.read_results(tmp_path / "study")
    settings = "sae-topk:steps=30:k=2:rate=0.003:width=1.0"
    conditions = lab.Conditions(pairs=feature_study.CONDITIONS.pairs, track="features")
    lab.run([settings], [row["case"]], ["superposed:ratio=1.5"], folder=tmp_path / "run", conditions=conditions)
    (again,) = lab.read_results(tmp_path / "run")
    assert {*row} == {*again}
    for name in ("method", "version", "settings", "case", "realisation", "dials", "seed", "pairs_seed", "model_digest"):
        assert row[name] == again[name], name
    for name in ("f1", "cosine", "firing", "control_cosine", "null_cosine", "ceiling_causal"):
        assert row[name] == pytest.approx(again[name], abs=1e-3), name
    rows = tmp_path / "study" / "rows"
    before = {path.name: path.stat().st_mtime_ns for path in rows.iterdir()}
    feature_study.run(grid, tmp_path / "study", 1)
    assert {path.name: path.stat().st_mtime_ns for path in rows.iterdir()} == before
    feature_study.table(tmp_path / "study")
    assert len(lab.read_results(tmp_path / "study")) == 1
