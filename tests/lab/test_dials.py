"""Dials by name, other names of methods, and runs with them: resumed, and over processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracr
from tests.cli.calling import invoke, invoke_json, run
from tracr import lab
from tracr.lab.choices import Configured, read_configured
from tracr.lab.finding import find_method
from tracr.lab.methods import ALIASES, METHODS, MethodData, exact_patching, run_method
from tracr.lab.realising import realisation_of
from tracr.lab.selecting import CORE
from tracr.lab.unread_edges import unread_edges


def test_every_dial_names_realisations() -> None:
    """All of them exist, with their dials; every realisation belongs to a dial; `tracr lab dials` lists all."""
    reached = set()
    for dial in lab.DIALS.values():
        assert len(dial.realisations) > 1
        for one in map(read_configured, dial.realisations):
            realisation_of(one.name).check_dials(one.settings)
            reached.add(one.name)
    assert reached == set(lab.REALISATIONS)
    assert [row["name"] for row in invoke_json("lab", "dials")] == list(lab.DIALS)
    assert "compiled:gap=16, compiled:gap=64, compiled" in " ".join(invoke("lab", "dials").split())
    with pytest.raises(tracr.TracrError, match=r"there is no dial 'gapp'\n  hint: did you mean gap"):
        lab.dial_realisations(["gapp"])


def test_other_names_of_methods() -> None:
    """`eap-ig` is the usual EAP-IG, for runs and for `run_method`; the core set has 60 cases or more."""
    assert find_method(Configured("eap-ig", {"steps": 3})).settings == {"steps": 3}
    for alias, name in ALIASES.items():
        assert find_method(Configured(alias)).name == name
        assert alias not in METHODS
    case = lab.case("hist")
    data = MethodData.of(case.pairs(8))
    assert run_method("exact-patching", case.model, data).scores == run_method("exact", case.model, data).scores
    assert len(set(CORE)) == len(CORE) >= 60


def test_decoy_edges_are_wired_and_never_matter() -> None:
    """Patching an edge of a decoy changes no answer; a model without decoys has none."""
    subject = lab.subject("hist", "decoys")
    found = unread_edges(subject.model.ground_truth)
    wired, _ = subject.model.ground_truth.split("qkv")
    assert found
    assert set(found) <= set(wired)
    scores = exact_patching(subject.model, MethodData.of(subject.case.pairs(32)))
    assert {scores[key] for key in found} == {0.0}
    assert not set(found) & set(subject.truth.alone)


def test_a_run_with_dials(tmp_path: Path) -> None:
    """`--dials` adds its realisations; the same command again makes nothing; another dial makes only its rows."""
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    words = ["lab", "run", "--methods", "exact-patching,random", "--cases", "hist,count", "--seeds", "0-1", "--pairs",
             "8", "-o", str(out)]  # fmt: skip
    assert "24 new rows, 0 found" in invoke(*words, "--dials", "gap")
    assert "0 new rows, 24 found" in invoke(*words, "--dials", "gap")
    assert "8 new rows, 24 found" in invoke(*words, "--dials", "rotation,gap", "--jobs", "1")
    labels = lab.report(out).table.realisations
    assert labels == ("compiled", "compiled:gap=16", "compiled:gap=64", "rotated")
    done = run(*words, "--dials", "gapp")
    assert done.returncode == 1
    assert "did you mean gap" in done.stderr


def test_a_folder_of_an_earlier_version(tmp_path: Path) -> None:
    """Rows without a column that was added since stay; the table has it, empty."""
    parquet = pytest.importorskip("pyarrow.parquet")
    lab.run(["random"], ["hist"], folder=tmp_path)
    (part,) = (tmp_path / "parts").iterdir()
    parquet.write_table(parquet.read_table(part).drop_columns(["unread"]), part)
    made = lab.run(["random"], ["hist"], ["rotated"], folder=tmp_path)
    assert (made.made, made.failed) == (1, 0)
    rows = parquet.read_table(made.results).to_pylist()
    assert sorted((row["realisation"], row["unread"]) for row in rows) == [("compiled", None), ("rotated", [])]
    assert len(lab.report(tmp_path).table.rows) == 2


@pytest.mark.slow
def test_dials_over_processes(tmp_path: Path) -> None:
    """The same rows in one process and over several; tests/lab/test_running.py has Ray."""
    pytest.importorskip("pyarrow")
    from tests.cli.calling import run_apart

    results = []
    for name, more in (("one", []), ("two", ["--jobs", "2"])):
        words = [
            "--methods",
            "exact,random",
            "--cases",
            "hist,count",
            "--dials",
            "gap,rotation,decoys",
            "--seeds",
            "0-1",
        ]
        done = run_apart("lab", "run", *words, "--seeds", "0-1", "--pairs", "8", *more, "-o", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        rows = lab.read_results(tmp_path / name)
        keys = ("method", "case", "realisation", "dials", "seed", "model_digest", "auroc", "unread")
        results.append(sorted([row[key] for key in keys] for row in rows))
    assert results[0] == results[1]
    assert len(results[0]) == 2 * 2 * 2 * 7
