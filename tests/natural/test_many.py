"""Twins of many programs: what is finished is skipped, what is refused is listed, what was stopped goes on."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tracr
from tests.natural.twins import untrained
from tracr import zoo
from tracr.cli import app
from tracr.errors import TracrError
from tracr.rasp import programs

pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr.natural import distilling, many
from tracr.natural.admission import Admission, Rate
from tracr.natural.architecture import architecture_of
from tracr.natural.many import TwinTask, train_many
from tracr.natural.twin_model import TwinModel
from tracr.workers import over_ray

SIZES: dict[str, Any] = {"width": 24, "d_head": 8, "d_mlp": 20, "steps": 1_000}
GIVEN = ["--width", "24", "--d-head", "24", "--d-mlp", "20", "--steps", "1000"]


class Training:
    """Takes the place of `twins`: random weights at once; even seeds are admitted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[int, ...]] = []
        monkeypatch.setattr(many, "twins", self)

    def __call__(self, model: Any, seeds: Any, *, checkpoint: Path, progress: Any, **settings: Any) -> list[TwinModel]:
        sizes = [settings[name] for name in ("width", "d_head", "d_mlp")]
        architecture_of(model, *sizes, layer_norm=True, activation="gelu")
        self.seen.append(tuple(seeds))
        checkpoint.mkdir(parents=True, exist_ok=True)
        made = [
            replace(untrained(model, seed=seed, d_head=settings["d_head"]), steps=settings["steps"]) for seed in seeds
        ]
        known = Rate(0, 100_000)
        return [
            replace(
                twin,
                admission=Admission(
                    Rate(100, 100),
                    True,
                    tuple(replace(site, false_changes=known) for site in twin.admission.sites),
                ),
            )
            if twin.seed % 2 == 0
            else twin
            for twin in made
        ]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    """Training that takes no time."""
    return Training(monkeypatch)


def task(folder: Path, seeds: tuple[int, ...] = (0, 1), **changed: Any) -> TwinTask:
    """Twins of `hist`."""
    model = tracr.compile(programs.make_hist(), "abc", 3)
    return TwinTask("hist", model, seeds, folder, {**SIZES, **changed})


def test_finished_twins_are_skipped(training: Training, tmp_path: Path) -> None:
    """More seeds train the missing ones only; more steps train those again that are not admitted."""
    (first,) = train_many([task(tmp_path)])
    assert [twin.admitted for twin in first.twins] == [True, False]
    (again,) = train_many([task(tmp_path)])
    assert (again.seconds, again.admitted) == (0, 1)
    (more,) = train_many([task(tmp_path, (3, 2, 1, 0))])
    assert [twin.seed for twin in more.twins] == [3, 2, 1, 0]
    (longer,) = train_many([task(tmp_path, steps=2_000)])
    assert [twin.steps for twin in longer.twins] == [1_000, 2_000]
    assert training.seen == [(0, 1), (2, 3), (1,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed0", "seed1", "seed2", "seed3"]
    for twin in longer.twins:
        back = tracr.load(tmp_path / f"seed{twin.seed}")
        assert isinstance(back, TwinModel)
        assert back.admission == twin.admission


def test_a_run_stopped_while_saving_goes_on_with_all_its_seeds(training: Training, tmp_path: Path) -> None:
    """The state of training is that of the seeds that train together; twins that are there are not replaced."""
    list(train_many([task(tmp_path)]))
    before = (tmp_path / "seed0" / "twin.json").stat().st_mtime_ns
    (tmp_path / "training-0_1").mkdir()
    (tmp_path / "training-1+5").mkdir()  # of another run
    shutil.rmtree(tmp_path / "seed1")
    (made,) = train_many([task(tmp_path, (0, 1, 2))])
    assert [twin.seed for twin in made.twins] == [0, 1, 2]
    shutil.rmtree(tmp_path / "seed1")
    (made,) = train_many([task(tmp_path)])
    assert training.seen == [(0, 1), (1, 2), (0, 1)]
    assert (tmp_path / "seed0" / "twin.json").stat().st_mtime_ns == before
    assert [twin.seed for twin in made.twins] == [0, 1]
    (tmp_path / "training-0_1").mkdir()  # stopped after the last twin was saved
    list(train_many([task(tmp_path)]))
    assert [path.name for path in tmp_path.glob("training*")] == ["training-1+5"]


@pytest.mark.usefixtures("training")
def test_twins_of_something_else_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another width, another program, a damaged folder; other programs are trained all the same."""
    (first,) = train_many([task(tmp_path / "a")])
    other = replace(first.task, model=tracr.compile(programs.make_hist(), "abcd", 3))
    small = task(tmp_path / "b", width=8)
    small = replace(small, model=tracr.compile(programs.make_hist2(), "abc", 3))
    damaged = task(tmp_path / "c")
    list(train_many([damaged]))
    (tmp_path / "c" / "seed0" / "twin.safetensors").write_bytes(b"")
    tasks = [task(tmp_path / "a", width=32), other, small, damaged, task(tmp_path / "d")]
    found = {id(made.task): made for made in train_many(tasks)}
    problems = [found[id(one)].problem for one in tasks]
    for problem, text in zip(
        problems, ("other settings", "of another program", "the teacher has 2 heads", "was changed", ""), strict=True
    ):
        assert text in problem
        assert problem.startswith("refused: ") or not text

    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError("too large")

    monkeypatch.setattr(many, "twins", broken)
    (made,) = train_many([task(tmp_path / "e")])
    assert made.problem == "failed: MemoryError: too large"


def test_tasks_and_results_travel(tmp_path: Path, training: Training) -> None:
    """They are pickled on their way to workers and back."""
    (made,) = train_many([task(tmp_path)])
    back = pickle.loads(pickle.dumps(made))
    ids = made.twins[1].encode("abca"[:3])
    np.testing.assert_array_equal(back.twins[1].logits(ids), made.twins[1].logits(ids))
    assert back.task.seeds == (0, 1)
    assert training.seen == [(0, 1)]


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, ["twin", *words])


def test_the_command_line(training: Training, tmp_path: Path) -> None:
    """Several programs, in folders of their own; refused ones are listed, and the rest is trained."""
    out = str(tmp_path / "twins")
    result = invoke("hist", "hist2", "nosuch", "--seeds", "0-1", *GIVEN, "-o", out)
    assert result.exit_code == 1
    assert isinstance(result.exception, TracrError)
    assert "2 programs have no twins: nosuch, hist2" in str(result.exception)
    rows = dict(line.split("\t", 1) for line in result.output.splitlines() if "\t" in line)
    assert rows["hist"].startswith("1\t1 of 2\t1,000\t")
    assert "seed 1: right on 0.00%, blocks.0.attn.0" in rows["hist"]
    assert "refused: no program 'nosuch'" in rows["nosuch"]
    assert "refused: the teacher has" in rows["hist2"]
    assert "1 of 2 twins admitted; every seed of 0 of 1 program" in result.output
    twin = tracr.load(tmp_path / "twins" / "hist" / "seed1")
    assert isinstance(twin, TwinModel)
    assert list(twin.teacher.options.vocab) == list("abcd")  # the size of `case_of`, not the library's
    result = invoke("hist", "count", "--seeds", "0", *GIVEN, "-o", out)
    assert result.exit_code == 0
    assert "hist\t1\t1 of 1\t1,000\tfound" in result.output
    assert training.seen == [(0, 1), (0,)]


@pytest.mark.usefixtures("training")
def test_one_program(tmp_path: Path) -> None:
    """Its twins are in the folder itself; sizes that are given are used; a refusal is the error."""
    out = str(tmp_path)
    result = invoke("hist", "--seeds", "0,1", "--vocab", "ab", "--max-len", "3", *GIVEN, "-o", out)
    assert result.exit_code == 0
    assert f"{tmp_path / 'seed1'}: TwinModel(hist: 1 layer" in result.output
    assert "blocks.0.attn.0: too few pairs" in result.output
    twin = tracr.load(tmp_path / "seed0")
    assert isinstance(twin, TwinModel)
    assert list(twin.teacher.options.vocab) == list("ab")
    for words, message in (
        (["nosuch"], "no program"),
        ([], "which program"),
        (["hist", "--all"], "leave it out"),
    ):
        result = invoke(*words, "-o", out)
        assert result.exit_code
        assert message in f"{result.output} {result.exception}"


@pytest.mark.slow
def test_all_programs(training: Training, tmp_path: Path) -> None:
    """Every program has a row and a folder; with sizes, every program of the library that can have them."""
    given = ["--width", "24", "--d-head", "8", "--d-mlp", "20", "--steps", "1"]
    result = invoke("--all", *given, "-o", str(tmp_path / "a"))
    assert result.exit_code == 0, result.output
    assert len(training.seen) == len(zoo.names("library"))
    assert len(list((tmp_path / "a").iterdir())) == len(zoo.names("library"))
    result = invoke("--all", "--vocab", "ab", "--max-len", "2", *given, "-o", str(tmp_path / "b"))
    assert result.exit_code == 1
    assert "sort: refused" in result.output
    assert (tmp_path / "b" / "hist" / "seed0" / "twin.json").exists()


def trained_for(folder: Path) -> int:
    """The steps of the training in a folder; 0 before its first round."""
    try:
        return int(json.loads((folder / "training-0" / "training.json").read_text())["done"])
    except OSError:
        return 0


SMALL = {"width": 8, "d_head": 8, "d_mlp": 8, "steps": 3_000, "batch": 8}
WORDS = [word for name, size in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(size))]


SCRIPT = """
import dataclasses
from tracr.cli import main
from tracr.natural import distilling
distilling.SIZES = {"cpu": dataclasses.replace(distilling.SIZES["cpu"], tries=4096)}  # few lessons, drawn quickly
distilling.TRIES = distilling.MANY_TRIES = 4096
main()
"""


@pytest.fixture
def few_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lessons that are drawn quickly."""
    monkeypatch.setitem(distilling.SIZES, "cpu", replace(distilling.SIZES["cpu"], tries=4096))
    for name in ("TRIES", "MANY_TRIES"):
        monkeypatch.setattr(distilling, name, 4096)


@pytest.mark.slow
@pytest.mark.usefixtures("few_lessons")
def test_kill_and_resume(tmp_path: Path) -> None:
    """Killed while its second program trains, a run finds the first and continues the second where it was."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = ["twin", "length", "hist", "--vocab", "ab", "--max-len", "3", *WORDS, "-o", str(tmp_path)]
    with subprocess.Popen([sys.executable, "-c", SCRIPT, *words], env=environment) as process:
        while not trained_for(tmp_path / "hist"):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    done = trained_for(tmp_path / "hist")
    assert (tmp_path / "length" / "seed0" / "twin.json").exists()
    models = {"length": programs.make_length(), "hist": programs.make_hist()}
    tasks = [
        TwinTask(name, tracr.compile(program, "ab", 3), (0,), tmp_path / name, SMALL)
        for name, program in models.items()
    ]
    rounds: list[tuple[str, int]] = []
    found, made = train_many(tasks, progress=lambda task, progress: rounds.append((task.name, progress.done)))
    assert rounds[0] == ("hist", done + 1_000)
    assert (found.task.name, found.seconds) == ("length", 0)
    assert not made.problem
    assert not list((tmp_path / "hist").glob("training*"))
    result = invoke(*words[1:])
    assert result.exit_code == 0
    assert [line.split("\t")[4] for line in result.output.splitlines() if "\t" in line] == ["seconds", "found", "found"]


@pytest.mark.slow
def test_ray(tmp_path: Path) -> None:
    """A worker trains and this process saves."""
    pytest.importorskip("ray")
    model = tracr.compile(programs.make_hist(), "abc", 3)
    with over_ray(gpus=True) as workers:
        (made,) = train_many([TwinTask("hist", model, (0,), tmp_path, {**SMALL, "steps": 1})], workers=workers)
    assert not made.problem
    back = tracr.load(tmp_path / "seed0")
    assert isinstance(back, TwinModel)
    assert back.admission == made.twins[0].admission
    assert [path.name for path in tmp_path.iterdir()] == ["seed0"]
