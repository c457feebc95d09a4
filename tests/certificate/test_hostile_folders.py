"""Folders that are damaged or hostile: always a rejection with a reason, in bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tracr
import tracr_check
from tests.certificate.hostile_folders import SECONDS, broken_tensors, hostile, hostile_hints, read, with_digests
from tests.hanging import HUNG
from tests.tiers import usual
from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import EveryInput, wrong_inputs
from tracr.rasp import programs

ROOT = Path(__file__).parents[2]
HARMLESS = {"model.json a long number", "certificate.json a long number", "2⁶⁰ signs"}
"""Nothing that the checker reads is changed by these, so it may accept them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certified model with heads, neurons and a selector of two parts."""
    path = tmp_path_factory.mktemp("hostile") / "model"
    tracr.compile(programs.make_sort_unique(tracr.rasp.tokens, tracr.rasp.tokens), "abc", 3).save(
        path, certificate=True
    )
    return path


@pytest.mark.slow
def test_hostile_folders_are_rejected_in_time(folder: Path) -> None:
    """In a process with 3 GB of memory and some seconds for each; every rejection has a reason."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.certificate.hostile_folders", str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=HUNG,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *found, last = map(json.loads, done.stdout.splitlines())
    assert len(found) == sum(1 for _ in hostile(read(folder)))
    assert {one["what"] for one in found if one["accepted"]} <= HARMLESS
    assert all(one["reason"] for one in found if not one["accepted"])
    assert max(one["seconds"] for one in found) < SECONDS / 2
    assert last["peak"] < 2**31


def test_hostile_folders_are_rejected(folder: Path, tmp_path: Path) -> None:
    """Headers that lie, and hints that are wrong or too many."""
    files = read(folder)
    for what, changed in (*broken_tensors(files), *hostile_hints(files)):
        for name, data in with_digests(changed).items():
            (tmp_path / name).write_bytes(data)
        verdict = tracr_check.check_folder(tmp_path)
        assert what in HARMLESS or not verdict.accepted, what
        assert verdict.accepted or verdict.reason, what


@pytest.mark.parametrize("missing", ["model.json", "tables.safetensors", "weights.safetensors", "certificate.json"])
def test_missing_files_and_files_of_other_kinds(folder: Path, missing: str, tmp_path: Path) -> None:
    """A missing file, a folder, a pipe, a link to nothing."""
    for name, data in read(folder).items():
        if name != missing:
            (tmp_path / name).write_bytes(data)
    assert not tracr_check.check_folder(tmp_path).accepted
    (tmp_path / missing).mkdir()
    assert not tracr_check.check_folder(tmp_path).accepted
    (tmp_path / missing).rmdir()
    (tmp_path / missing).symlink_to(tmp_path / "nothing")
    assert not tracr_check.check_folder(tmp_path).accepted
    (tmp_path / missing).unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / missing)
        assert not tracr_check.check_folder(tmp_path).accepted
    assert not tracr_check.check_folder(tmp_path / "no folder").accepted


def test_the_digests_are_compared(folder: Path, tmp_path: Path) -> None:
    """Any byte of the three files."""
    files = read(folder)
    for name in ("model.json", "tables.safetensors", "weights.safetensors"):
        for changed, data in {**files, name: files[name] + b" "}.items():
            (tmp_path / changed).write_bytes(data)
        verdict = tracr_check.check_folder(tmp_path)
        assert not verdict.accepted
        assert name in verdict.reason


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_bytes(folder: Path, seed: int, tmp_path: Path) -> None:
    """Bytes changed, cut out and repeated: rejected, or what was accepted is right on every input."""
    rng = np.random.default_rng(seed)
    files = read(folder)
    rejected = 0
    for _ in range(40 if seed == 0 else usual(800, long=1_500)):
        name = sorted(files)[int(rng.integers(4))]
        data = bytearray(files[name])
        at = int(rng.integers(len(data)))
        match int(rng.integers(3)):
            case 0:
                data[at] = int(rng.integers(256))
            case 1:
                del data[at : at + int(rng.integers(1, 9))]
            case _:
                data[at:at] = data[at : at + int(rng.integers(1, 9))]
        changed = with_digests({**files, name: bytes(data)})
        for each, content in changed.items():
            (tmp_path / each).write_bytes(content)
        verdict = tracr_check.check_folder(tmp_path)
        rejected += not verdict.accepted
        if verdict.accepted and name != "certificate.json":
            parts = _parts(tmp_path)
            assert wrong_inputs(parts, EveryInput(parts)) == 0, (name, at)
    assert rejected > 10


def _parts(folder: Path) -> SavedParts:
    import safetensors.numpy

    weights, tables = (
        safetensors.numpy.load((folder / f"{name}.safetensors").read_bytes()) for name in ("weights", "tables")
    )
    return SavedParts(weights, tables, json.loads((folder / "model.json").read_text()), {})
