"""Shards of compiled models: right, readable, deterministic, resumable."""

from __future__ import annotations

import importlib.util
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly
from tests.datasets.killing import content, kill_when, run
from tracr.datasets import Controls, Record, read_programs, sample, write_programs
from tracr.datasets.building import build_shards, outcomes
from tracr.datasets.settings import Settings
from tracr.datasets.stored import read_models, read_sidecar
from tracr.ir.options import LEVELS
from tracr.rasp.generate import random_inputs
from tracr.workers import over_processes, over_ray

CONTROLS = Controls(("a", "b", "c"), 4, max_ops=4)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(sample(24, 1, CONTROLS))


@pytest.mark.parametrize("level", LEVELS)
def test_models_come_back(tmp_path: Path, records: list[Record], level: int) -> None:
    """A stored model has the weights and labels of a fresh compilation, and runs without one."""
    assert build_shards(tmp_path, records, Settings(level, shard_size=10)) == 24
    assert sorted(content(tmp_path)) == [f"shard-0000{n}.{kind}" for n in range(3) for kind in ("json", "safetensors")]
    stored = list(read_models(tmp_path))
    assert outcomes(tmp_path)["compiled"] == len(stored) >= 22
    for model in stored:
        record = records[model.id]
        fresh = compile_quietly(record.program, "abc", 4, level=level)
        named = dict(fresh.cast(np.float32).named())
        assert list(named) == list(model.weights)  # in the same order
        assert all(np.array_equal(named[name], model.weights[name]) for name in named)
        assert model.labels == fresh.residual.labels
        assert model.source == record.source
        assert model.entry["meaning"] == record.meaning
        assert model.entry["ground_truth"]["format"] == "tracr ground truth"
        assert model.entry["verification"]["exhaustive"]
        for xs in random_inputs(0, "abc", 4, 6):
            assert model(xs) == fresh(xs)
        assert model(["a", "pad", "pad"]) == fresh(["a", "pad", "pad"])
        again = pickle.loads(pickle.dumps(model))
        assert again(["a", "b"]) == model(["a", "b"])
        assert list(again.weights) == list(model.weights)


def test_refusals_are_recorded(tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program the compiler refuses has a reason instead of a model; a wrong model and a crash are told apart."""

    class Wrong:
        def verify(self, budget: int) -> None:
            return None

    calls: list[object] = []

    def compiler(outputs: object, options: object) -> Wrong:
        calls.append(outputs)
        if len(calls) == 1:
            raise tracr.LimitError("too large", hint="make it smaller", expression="x")
        if len(calls) == 2:
            raise ZeroDivisionError
        return Wrong()

    monkeypatch.setattr("tracr.datasets.outcomes.compile_model", compiler)
    build_shards(tmp_path, records[:3])
    refused, failed, wrong = read_sidecar(tmp_path / "shard-00000.json")["programs"]
    assert refused["reason"] == {"error": "LimitError", "what": "x: too large", "hint": "make it smaller"}
    assert failed["status"] == "failed"
    assert "ZeroDivisionError" in failed["reason"]
    assert wrong["status"] == "wrong"
    assert list(read_models(tmp_path)) == []


def test_records_that_do_not_fit_their_seed_are_refused(tmp_path: Path, records: list[Record]) -> None:
    """The text of a record is never executed: what its seed gives is, if that is the same."""
    build_shards(tmp_path, [replace(records[0], source="raise SystemExit")])
    (entry,) = read_sidecar(tmp_path / "shard-00000.json")["programs"]
    assert entry["status"] == "refused"
    assert "is not the program of its seed [1, 0]" in entry["reason"]["what"]


def test_expressions_know_their_line(tmp_path: Path, records: list[Record]) -> None:
    """Labels and ground truth tell of lines of the stored source."""
    build_shards(tmp_path, records)
    assert any('"program.py:' in json.dumps(model.entry["ground_truth"]) for model in read_models(tmp_path))


def test_labels_and_truth_can_be_left_out(tmp_path: Path, records: list[Record]) -> None:
    """The rest is the same; asking for labels says why there are none."""
    build_shards(tmp_path / "whole", records[:3])
    build_shards(tmp_path / "lean", records[:3], Settings(truth=False))
    whole, lean = (read_sidecar(tmp_path / name / "shard-00000.json") for name in ("whole", "lean"))
    for fst, snd in zip(whole["programs"], lean["programs"], strict=True):
        assert set(fst) - set(snd) == {"residual", "ground_truth"}
        assert all(fst[key] == snd[key] for key in snd)
    assert whole["weights"] == lean["weights"]
    model = next(read_models(tmp_path / "lean"))
    assert model(["a", "b"]) == records[0].program(["a", "b"])
    with pytest.raises(tracr.FormatError, match="without labels"):
        _ = model.labels


def test_missing_shards_are_made(tmp_path: Path, records: list[Record]) -> None:
    """Only those: what is complete stays, what lost a file, was left half or lacks later programs is made anew."""
    build_shards(tmp_path / "whole", records, Settings(shard_size=6))
    folder = tmp_path / "broken"
    build_shards(folder, records[:20], Settings(shard_size=6))
    (folder / "shard-00001.json").unlink()
    (folder / "shard-00002.safetensors").write_bytes(b"half")
    (folder / ".shard-00002.json.tmp").write_bytes(b"half")
    assert build_shards(folder, records, Settings(shard_size=6)) == 18
    assert build_shards(folder, records, Settings(shard_size=6)) == 0
    assert content(folder) == content(tmp_path / "whole")


def test_other_settings_are_refused(tmp_path: Path, records: list[Record]) -> None:
    """A folder holds models of one level and one dataset."""
    build_shards(tmp_path, records[:3])
    with pytest.raises(tracr.FormatError, match="other settings"):
        build_shards(tmp_path, records[:3], Settings(level=0))
    with pytest.raises(tracr.FormatError, match="other programs"):
        build_shards(tmp_path, records[3:6])
    with pytest.raises(tracr.FormatError, match="other settings"):
        build_shards(tmp_path, records[:3], Settings(shard_size=2))
    assert build_shards(tmp_path, records[:2]) == 0


def test_changed_shards_are_refused(tmp_path: Path, records: list[Record]) -> None:
    """Weights that are not those that were written, and files that are no shards."""
    with pytest.raises(tracr.FormatError, match="no shards"):
        list(read_models(tmp_path))
    build_shards(tmp_path, records[:2])
    weights = tmp_path / "shard-00000.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(tracr.FormatError, match="was changed"):
        list(read_models(tmp_path))
    sidecar = tmp_path / "shard-00000.json"
    for text, message in (("{}", "does not describe"), ("[", "does not describe")):
        sidecar.write_text(text)
        with pytest.raises(tracr.FormatError, match=message):
            list(read_models(tmp_path))


def test_processes_give_the_same_shards(tmp_path: Path, records: list[Record]) -> None:
    """Byte for byte."""
    build_shards(tmp_path / "one", records, Settings(shard_size=5))
    with over_processes(2) as workers:
        build_shards(tmp_path / "two", records, Settings(shard_size=5), workers=workers)
    assert content(tmp_path / "one") == content(tmp_path / "two")


@pytest.mark.slow
def test_a_killed_build_goes_on(tmp_path: Path) -> None:
    """The command, with two processes, killed while it compiles and started again, makes what it would have made."""
    arguments = ("--count", 60, "--compile", "--shard-size", 4, "--jobs", 2, "--max-ops", 4, "--max-len", 4)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    folder = killed / "p.level1"
    kill_when(lambda: len(list(folder.glob("shard-*.json"))) >= 2, *arguments, "-o", killed / "p.jsonl")
    left = len(list(folder.glob("shard-*.json")))
    assert left < 15
    done = run(*arguments, "-o", killed / "p.jsonl")
    assert done.returncode == 0, done.stderr
    assert "60 programs" in done.stdout.splitlines()[0]
    write_programs(whole / "p.jsonl", 60, 0, Controls(max_ops=4, max_seq_len=4))
    build_shards(whole / "p.level1", read_programs(whole / "p.jsonl"), Settings(shard_size=4))
    assert content(killed) == content(whole)


def test_wrong_models_are_an_error(tmp_path: Path) -> None:
    """The command fails, loudly, if a shard says that a model is wrong."""
    arguments = ("--count", 2, "--compile", "-o", tmp_path / "p.jsonl", "--max-ops", 1)
    assert run(*arguments).returncode == 0
    path = tmp_path / "p.level1" / "shard-00000.json"
    data = json.loads(path.read_text())
    data["programs"][0]["status"] = "wrong"
    path.write_text(json.dumps(data))
    done = run(*arguments)
    assert done.returncode == 1
    assert "1 models wrong" in done.stdout


def test_without_ray_the_error_says_what_to_install() -> None:
    """Ray is an extra."""
    if importlib.util.find_spec("ray"):
        pytest.skip("Ray is installed")
    with pytest.raises(tracr.TracrError, match="sweep"), over_ray():
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_files(tmp_path: Path, records: list[Record]) -> None:
    """Over a local Ray cluster, byte for byte what one process makes."""
    pytest.importorskip("ray")
    with over_ray() as workers:
        write_programs(tmp_path / "ray" / "p.jsonl", 24, 1, CONTROLS, workers)
        build_shards(tmp_path / "ray", records, Settings(shard_size=5), workers=workers)
    write_programs(tmp_path / "one" / "p.jsonl", 24, 1, CONTROLS)
    build_shards(tmp_path / "one", records, Settings(shard_size=5))
    assert content(tmp_path / "ray") == content(tmp_path / "one")
