"""Runs of methods: the table, its scores, continuing after a kill, failures, users' methods, the report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tracr
from tests.cli.calling import invoke, run_apart
from tests.cli.calling import run as run_here
from tests.hanging import HUNG
from tests.lab.result_rows import brute_force
from tests.natural.twins import untrained
from tracr import lab
from tracr.lab.rows import COLUMNS
from tracr.lab.running import drawn_cases
from tracr.workers import over_processes

pytest.importorskip("pyarrow.parquet")

OWN = """
import os
import time
from pathlib import Path

def find(subject, data, seed=0):
    return {key: len(key[1]) + 0.25 * len(key[0]) for key in subject.candidates}

def all_edges(subject, data):
    return {key for key in subject.candidates if key[0] != "embed"}

def breaks(subject, data):
    if subject.case.name == "count" and not Path(__file__).with_name("mended").exists():
        raise MemoryError("no room")
    return {}

def dies(subject, data):
    os._exit(9)

def slow(subject, data):
    time.sleep(0.2)
    return {}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A user's file of methods."""
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def test_a_table_of_scores(tmp_path: Path, own: Path) -> None:
    """A row per method, case, realisation and seed; scores can be computed again from its columns."""
    methods = ["exact_patching", f"{own}:find", f"{own}:all_edges"]
    seen: list[tuple[int, int, int]] = []
    made = lab.run(
        methods,
        ["hist", lab.case("count")],
        ["compiled:level=0", "rotated"],
        [0, 2],
        folder=tmp_path / "out",
        conditions=lab.Conditions(pairs=16),
        progress=lambda *now: seen.append(now),
    )
    rows = lab.read_results(tmp_path / "out")
    assert (made.made, made.found, made.failed, len(rows)) == (24, 0, 0, 24)
    assert seen[0] == (0, 24, 0)
    assert seen[-1] == (24, 24, 0)
    assert list(rows[0]) == list(COLUMNS)
    keys = {(row["method"], row["case"], row["realisation"], row["dials"], row["seed"]) for row in rows}
    assert len(keys) == 24
    assert ("own.py:find", "hist", "compiled", '{"level": 0}', 2) in keys
    for row in rows:
        auroc, precision, exact = brute_force(row)
        assert row["auroc"] == pytest.approx(auroc)
        assert row["average_precision"] == pytest.approx(precision)
        assert row["as_set"] == (row["method"] == "own.py:all_edges")
        if not row["as_set"]:
            assert row["exact"] == exact
        assert row["seconds"] >= 0
        assert (
            row["model_digest"]
            == lab.subject(row["case"], row["realisation"], seed=row["seed"], **json.loads(row["dials"])).digest
        )
        assert row["alone"] == row["truth"].count("alone")
        if row["method"] == "exact":
            assert row["exact"] is True
            assert row["forward_passes"] == 2 * 16 + 16 * len(row["edges"])
        assert row["cmd"] >= 0
    again = lab.run(methods, ["hist", "count"], ["rotated"], [0, 2, 3], folder=tmp_path / "out",
                    conditions=lab.Conditions(pairs=16))  # fmt: skip
    assert (again.made, again.found) == (6, 12)
    assert lab.run(["exact", "exact_patching"], ["hist", "hist"], ["layer_norm"], [0, 0], folder=tmp_path / "out",
                   conditions=lab.Conditions(pairs=16)).made == 1  # fmt: skip
    with pytest.raises(tracr.FormatError, match="another pairs"):
        lab.run(methods, ["hist"], folder=tmp_path / "out", conditions=lab.Conditions(pairs=17))


def test_failures_are_rows(tmp_path: Path, own: Path) -> None:
    """A method that raises, or a subject that cannot be made, is a row with its error; `retry` repeats it."""
    out = tmp_path / "out"
    made = lab.run([f"{own}:breaks"], ["hist", "count"], ["compiled", "superposed:ratio=9"], folder=out)
    assert (made.made, made.failed) == (4, 3)
    errors = {(row["case"], row["realisation"]): row["error"] for row in lab.read_results(out)}
    assert errors["hist", "compiled"] == ""
    assert errors["count", "compiled"] == "MemoryError: no room"
    assert re.match("not made: .*no projection to 1 dimensions is without loss", errors["hist", "superposed"])
    assert lab.run([f"{own}:breaks"], ["hist", "count"], ["compiled"], folder=out).made == 0
    own.with_name("mended").touch()
    again = lab.run([f"{own}:breaks"], ["hist", "count"], ["compiled"], folder=out, retry=True)
    assert (again.made, again.failed) == (1, 2)
    errors = {(row["case"], row["realisation"]): row["error"] for row in lab.read_results(out)}
    assert len(errors) == 4  # failed rows that were not asked for stay
    assert errors["count", "compiled"] == ""
    shown = run_here("lab", "run", "--methods", f"{own}:breaks", "--cases", "hist", "--realisations",
                     "superposed:ratio=9", "-o", str(out))  # fmt: skip
    assert shown.returncode == 1
    assert "2 rows failed" in shown.stderr
    assert "no projection to 1 dimensions is without loss" in invoke("lab", "report", out, "--errors")


def test_a_killed_run_goes_on(tmp_path: Path, own: Path) -> None:
    """After kill -9 the finished rows are there, and the same command makes the others."""
    out = tmp_path / "out"
    words = ["lab", "run", "--methods", f"{own}:slow,exact_patching", "--cases", "hist,count,counter,hist_so_far",
             "--seeds", "0-2", "--pairs", "8", "-o", str(out)]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "tracr.cli", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + HUNG
    while len(list(out.glob("parts/*.parquet"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = len(list(out.glob("parts/*.parquet")))
    assert 3 <= finished < 12
    assert len(lab.read_results(out)) == 2 * finished
    printed = invoke(*words)
    assert f"{24 - 2 * finished} new rows, {2 * finished} found, 0 of all failed" in printed
    rows = lab.read_results(out)
    assert len({(row["method"], row["case"], row["seed"]) for row in rows}) == len(rows) == 24


def test_twins_that_are_not_admitted_are_left_out_of_the_report(tmp_path: Path) -> None:
    """They have rows, which say it, and the report counts them; it has an interval for the others."""
    lab.keep_twin("hist", untrained(lab.case("hist").model), cache=tmp_path / "cache")
    ways = ["compiled", "twin:width=24:d_head=8:d_mlp=20"]
    lab.run(["exact_patching"], ["hist"], ways, folder=tmp_path, cache=tmp_path / "cache")
    lab.run(["exact_patching"], ["ngrams"], ["compiled"], folder=tmp_path, cache=tmp_path / "cache")
    (row,) = (row for row in lab.read_results(tmp_path) if row["realisation"] == "twin")
    assert (row["admitted"], row["auroc"]) == (False, None)
    assert row["error"].startswith("not admitted: the twin of hist with seed 0")
    compiled, twin = lab.standings(lab.read_results(tmp_path))
    assert (twin.rows, twin.not_admitted, twin.scores["auroc"]) == (0, 1, None)
    assert compiled.scores["auroc"] == lab.Estimate(1.0, 1.0, 1.0, 8, 8)
    printed = invoke("lab", "report", tmp_path, "--csv", tmp_path / "scores.csv")
    assert "1.000 [1.000, 1.000]" in printed
    assert "1 not admitted" in printed
    header, first, _ = (tmp_path / "scores.csv").read_text().splitlines()
    assert dict(zip(header.split(","), first.split(","), strict=True))["auroc_mean"] == "1.0"


def test_trained_twins_and_a_subset_of_cases(tmp_path: Path) -> None:
    """Twins come from a folder, those that are not there are "not made"; a slow method runs on some of the cases."""
    twins = Path(__file__).parents[2] / "docs" / "natural" / "twins"
    shown = run_here("lab", "run", "--methods", "exact,weight-norm,acdc", "--cases", "hist,count,caesar,hist_so_far",
                     "--realisations", "twin", "--pairs", "8", "--twins", str(twins), "--subset", "acdc=2",
                     "-o", str(tmp_path))  # fmt: skip
    assert shown.returncode == 1
    rows = lab.read_results(tmp_path)
    assert {row["case"] for row in rows if row["method"] == "acdc"} == drawn_cases(
        ["hist", "count", "caesar", "hist_so_far"], 2
    )
    assert len(rows) == 4 + 4 + 2
    for row in rows:
        assert (row["status"] == "done") == (row["case"] != "caesar")
        assert row["error"].startswith("not made: there is no twin of caesar with seed 0") == (row["case"] == "caesar")
        assert row["method"] != "exact" or row["case"] == "caesar" or row["auroc"] == 1


@pytest.mark.slow
def test_processes_and_ray_make_the_same_rows(tmp_path: Path, own: Path) -> None:
    """But for times; a case of the user's own cannot be sent."""
    results = []
    for jobs in (1, 2):
        with over_processes(jobs) as workers:
            lab.run([f"{own}:find"], ["hist", "private:3:2"], ["rotated"], [0, 1], folder=tmp_path / str(jobs),
                    workers=workers)  # fmt: skip
        rows = lab.read_results(tmp_path / str(jobs))
        results.append(sorted((row["case"], row["seed"], row["model_digest"], row["auroc"]) for row in rows))
    assert results[0] == results[1]
    if pytest.importorskip("ray"):
        done = run_apart("lab", "run", "--methods", f"{own}:find", "--cases", "hist,private:3:2", "--realisations",
                         "rotated", "--seeds", "0-1", "--ray", "-o", str(tmp_path / "ray"))  # fmt: skip
        assert done.returncode == 0, done.stderr
        rows = lab.read_results(tmp_path / "ray")
        assert results[0] == sorted((row["case"], row["seed"], row["model_digest"], row["auroc"]) for row in rows)
    with over_processes(2) as workers, pytest.raises(tracr.TracrError, match=r"was killed.*\n  hint: .*fewer --jobs"):
        lab.run([f"{own}:dies"], ["hist"], folder=tmp_path / "dies", workers=workers)
    with over_processes(2) as workers, pytest.raises(tracr.TracrError, match="cannot be sent to another process"):
        lab.run(["exact_patching"], [lab.case("hist", vocab="ab")], folder=tmp_path / "own", workers=workers)
