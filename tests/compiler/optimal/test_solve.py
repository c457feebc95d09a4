"""The solver against the heuristic and against brute force; models it scheduled, saved and loaded. Needs OR-tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tracr
from tests.agreement import assert_agrees, load_compiled, some_inputs
from tests.compiler.circuits import DYCK2, DYCK3, every_schedule, few_schedules, random_circuit, random_models
from tracr.compiler.layers.assign import in_sublayers
from tracr.compiler.layers.narrow import narrowest
from tracr.compiler.layers.placing import placing_of
from tracr.compiler.optimal.solve import best_times
from tracr.saving.models import MODEL, read_model, tensors

pytest.importorskip("ortools")
pytestmark = pytest.mark.slow  # where every extra is installed


def test_the_solver_finds_the_best_of_all_schedules() -> None:
    """None is less deep, none of this depth is better or below the bound; and it says so."""
    tried = 0
    circuits = [random_circuit(seed, 3 + seed % 6) for seed in range(60)]
    circuits += [model.circuit for model in random_models(range(60), level=2)]
    for circuit in circuits:
        placing = placing_of(circuit)
        if placing.first == placing.last or not few_schedules(placing, 3000):
            continue
        assert not any(every_schedule(circuit, placing.depth - 1))
        best = min(map(placing.cost, every_schedule(circuit, placing.depth)))
        found = best_times(placing, 10.0)
        assert placing.cost(found.times) == best
        assert found.optimal
        assert placing.fewest <= found.fewest == best[0]
        tried += 1
    assert tried > 30


def test_the_solver_is_never_worse_than_the_heuristic() -> None:
    """On circuits too large to try everything; where it is stopped, too."""
    better = 0
    for seed in range(12):
        placing = placing_of(random_circuit(seed, 20 + seed))
        usual = placing.cost(narrowest(placing))
        for seconds in (1e-6, 1.0):
            found = best_times(placing, seconds)
            cost = placing.cost(found.times)
            assert cost <= usual
            assert found.fewest <= cost[0]
            if found.optimal:
                assert found.fewest == cost[0]
        better += cost[:3] < usual[:3]
        in_sublayers(random_circuit(seed, 20 + seed), found.times).verify()
    assert better  # otherwise there is nothing to see here


def test_compiling_with_the_solver() -> None:
    """The model is right, the same each time, and says what is proven; with no time to speak of it says that."""
    program, vocab, length = DYCK3
    model, again = (tracr.compile(*DYCK3, level=2, passes={"solve": True}) for _ in range(2))
    assert model.schedule.placement == again.schedule.placement
    assert model.schedule.status == "optimal"
    assert model.schedule.peak == model.schedule.fewest <= tracr.compile(*DYCK3, level=2).schedule.peak
    assert model.bounds().live.optimal
    assert_agrees(model, program, some_inputs(vocab, length, 200))
    hurried = tracr.compile(*DYCK3, level=2, passes={"solve": True}, solve_seconds=1e-9)
    assert hurried.schedule.status == "feasible, limit reached"
    assert hurried.schedule.peak == tracr.compile(*DYCK3, level=2).schedule.peak


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A model that the solver scheduled."""
    tracr.compile(*DYCK2, level=2, passes={"solve": True}).save(tmp_path / "model")
    return tmp_path / "model"


def test_loading_needs_no_solver(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule is saved with the model; compiling anew needs the solver, and says so."""
    expected = load_compiled(saved, recompile=True).show("schedule")

    def gone(module: str, extra: str) -> None:
        raise tracr.MissingExtra(f"this needs {module}", hint=extra)

    monkeypatch.setattr("tracr.compiler.optimal.solve.need", gone)
    model = load_compiled(saved)
    assert model.show("schedule") == expected
    assert model.verify(500)
    with pytest.raises(tracr.MissingExtra, match="ortools"):
        load_compiled(saved, recompile=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda schedule: schedule["sublayers"].pop(),
        lambda schedule: schedule["sublayers"].reverse(),
        lambda schedule: schedule.update(sublayers=[10**9] * len(schedule["sublayers"])),
        lambda schedule: schedule.update(status="perfect"),
        lambda schedule: schedule.update(fewest=-1),
        lambda schedule: schedule.clear(),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(saved: Path, change: Any) -> None:
    """A saved schedule that breaks a rule is refused when it is read."""
    content = json.loads((saved / MODEL).read_bytes())
    change(content["schedule"])
    weights = tensors((saved / "weights.safetensors").read_bytes(), "weights")
    tables = (saved / "tables.safetensors").read_bytes()
    with pytest.raises(tracr.TracrError):
        read_model(json.dumps(content).encode(), tables, weights, False, 10**8)
    del content["schedule"]
    with pytest.raises(tracr.FormatError, match="schedule"):
        read_model(json.dumps(content).encode(), tables, weights, False, 10**8)
