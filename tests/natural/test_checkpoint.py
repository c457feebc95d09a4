"""Checkpoints of training: a run killed at any moment and continued ends where a whole one ends, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.errors import FormatError, TracrError

jax = pytest.importorskip("jax")
pytest.importorskip("optax")
distilling = pytest.importorskip("tracr.natural.distilling")

from tracr import natural  # noqa: E402
from tracr.natural.checkpoint import ARRAYS, Checkpoint  # noqa: E402
from tracr.natural.training import State  # noqa: E402
from tracr.rasp import programs  # noqa: E402

ROUNDS, ROUND = 5, 10


class Killed(Exception):
    """The run ends here."""


@dataclass
class PlannedSchool:
    """A school where each seed is admissible in planned rounds, and training adds 1 to every weight."""

    plan: tuple[frozenset[int], ...]

    recipe = SimpleNamespace(steps=ROUNDS * ROUND)

    def train(self, state: State, keys: Any) -> tuple[State, Any]:
        """A round."""
        weights = {name: np.asarray(array) + 1 for name, array in state.weights.items()}
        return replace(state, weights=weights, averaged=weights, done=state.done + ROUND), np.zeros(len(self.plan))

    def missed(self, weights: Any) -> Any:
        """Nothing: every twin is measured."""
        return np.zeros((len(self.plan), 1))

    def nearly(self, missed: Any) -> Any:
        """Every twin."""
        return np.ones(len(missed), dtype=bool)

    def weighed(self, state: State, missed: Any) -> State:
        """The same."""
        return state

    def wrong(self, state: State) -> Any:
        """The same."""
        return state.wrong

    def twin(self, state: State, place: int, seed: int) -> Any:
        """The weights, and if they are admitted."""
        weights, steps = state.weights_of(place)
        round_ = int(weights["w"][0])
        return SimpleNamespace(admitted=round_ in self.plan[place], round=round_, steps=steps, seed=seed)


def start(seeds: int) -> State:
    """The state before training."""
    weights = {"w": np.zeros((seeds, 2), dtype=np.float32)}
    nothing = np.zeros(seeds, dtype=np.int64)
    wrong = np.full((seeds, 2), -1, dtype=np.int32)
    return State(weights, weights, {}, {"m": np.zeros(seeds)}, np.ones((seeds, 3)), wrong, 0, weights, nothing)


class DyingCheckpoint(Checkpoint):
    """A checkpoint whose run ends at one moment: before or after a state is written."""

    def __init__(self, kept: Checkpoint, kill: int) -> None:
        super().__init__(kept.folder, kept.settings)
        object.__setattr__(self, "moments", iter([False] * kill + [True]))

    def write(self, state: State) -> None:
        """Write the state, or die before or after it."""
        self._pass()
        super().write(state)
        self._pass()

    def _pass(self) -> None:
        if next(self.moments, False):  # type: ignore[attr-defined]
            raise Killed


def ended(school: PlannedSchool, kept: Checkpoint | None) -> list[tuple[int, int]]:
    """The round and the steps of each twin at the end."""
    seeds = range(len(school.plan))
    state = start(len(seeds)) if kept is None else kept.read(start(len(seeds)))
    made = distilling.train_until_admitted(school, school, state, seeds, kept, None)
    return [(one.round, one.steps) for one in made]


@pytest.mark.parametrize(
    "plan", [({1}, {3}), ({2, 5}, {2}), ({1}, set()), (set(),), ({1, 2, 3}, {4}, set()), ({5}, {1})]
)
def test_runs_killed_at_any_moment_end_the_same(plan: tuple[set[int], ...], tmp_path: Path) -> None:
    """Also where one seed is admitted before the kill and others later: it keeps the weights of its admission."""
    school = PlannedSchool(tuple(frozenset(one) for one in plan))
    whole = ended(school, None)
    assert whole == [(min(one, default=ROUNDS), ROUND * min(one, default=ROUNDS)) for one in plan]
    for kill in range(2 * ROUNDS):
        kept = Checkpoint(tmp_path / str(kill), "settings")
        try:
            first = ended(school, DyingCheckpoint(kept, kill))
        except Killed:
            first = ended(school, kept)
        assert first == whole, kill
        assert ended(school, kept) == whole, "a run that had ended"


def test_runs_stopped_by_time_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run ends after the round in which its time has passed; until then it shows the admitted twins."""
    school, kept = PlannedSchool((frozenset({2}), frozenset({4}))), Checkpoint(tmp_path, "settings")
    clock = iter(range(100))
    monkeypatch.setattr(distilling.time, "monotonic", lambda: next(clock))
    shown: list[Any] = []
    made = distilling.train_until_admitted(school, school, start(2), range(2), kept, shown.append, end=2)
    assert [(one.admitted, one.steps) for one in made] == [(True, 2 * ROUND), (False, 3 * ROUND)]
    assert [one.admitted for one in shown] == [(), (0,), (0,)]
    assert [[twin.seed for twin in one.twins] for one in shown] == [[], [0], [0]]
    assert ended(school, kept) == ended(school, None)


def test_means_are_read_whatever_the_settings(tmp_path: Path) -> None:
    """They are the running means, not the weights of the last step or those of admitted seeds."""
    state = start(2)
    means = {name: np.arange(6, dtype=np.float32).reshape(2, 3) + size for size, name in enumerate(("a.W", "b.W"))}
    others = {name: -1 - array for name, array in means.items()}
    state = replace(state, weights=others, averaged=means, admitted=others, done=7)
    Checkpoint(tmp_path / "run", "settings").write(state)
    read, done = Checkpoint.means(tmp_path / "run", ["b.W", "a.W"])
    assert done == 7
    assert read.keys() == means.keys()
    for name, array in means.items():
        np.testing.assert_array_equal(read[name], array)
    with pytest.raises(FormatError, match="of another model"):
        Checkpoint.means(tmp_path / "run", [f"{number}" for number in range(30)])
    (tmp_path / "run" / ARRAYS).write_bytes(b"nothing")
    with pytest.raises(FormatError, match="not a safetensors file"):
        Checkpoint.means(tmp_path / "run", means)


SCRIPT = """
import sys, tracr
from tracr import natural
from tracr.natural import distilling
from tracr.rasp import programs
sizes = distilling.BankSizes(trained=200, most_trained=10**6, idle=20, checked=20, tries=2**10, mined=100)
distilling.SIZES = {"cpu": sizes}
distilling.HELD_OUT = distilling.IDLE = 20
distilling.TRIES = distilling.MANY_TRIES = 2**10
model = tracr.compile(programs.make_hist(), "abc", 4)
shown = lambda progress: print(progress.done, flush=True)
sizes = {"width": 32, "d_head": 16, "d_mlp": 16, "steps": 2000, "batch": 4, "start": "compiled"}
for twin in natural.twins(model, [5, 6], **sizes, checkpoint=sys.argv[1], progress=shown):
    twin.save(f"{sys.argv[2]}.{twin.seed}")
"""


@pytest.mark.slow
def test_processes_end_the_same(tmp_path: Path) -> None:
    """Killed after a round and started again in another process, a run ends where one that was not killed ends."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def begin(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / f"{name}.training"), str(tmp_path / name)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    with begin("killed") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1000\n"
        process.send_signal(signal.SIGKILL)
    again, whole = begin("killed"), begin("whole")
    rounds = again.communicate()[0].split()
    assert whole.communicate()[0].split()[0] == "1000"
    assert again.returncode == whole.returncode == 0
    assert "1000" not in rounds
    for seed in (5, 6):
        one, other = (tracr.load(tmp_path / f"{name}.{seed}") for name in ("killed", "whole"))
        for (name, array), (_, expected) in zip(one.parameters.named(), other.parameters.named(), strict=True):
            np.testing.assert_array_equal(array, expected, err_msg=name)
    with pytest.raises(TracrError, match="other settings"):
        natural.twins(tracr.compile(programs.make_hist(), "abc", 4), [6], checkpoint=tmp_path / "whole.training")
