from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.hanging import HUNG
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES

pytestmark = pytest.mark.repository

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = BENCHMARKS / "against_original.py"


def run(*arguments: str, timeout: float = HUNG) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def test_all_of_the_library_is_measured(cases: ModuleType) -> None:
    assert set(cases.PROGRAMS) == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_case_has_its_size_and_answers(cases: ModuleType, name: str) -> None:
    for size in cases.SIZES:
        case = cases.Case(name, *size)
        assert len(set(case.vocab)) == case.tokens
        assert {len(tokens) for tokens in case.batch(3)} == {case.longest}
    small = cases.Case(name, 4, 5)
    program = small.build(programs, rasp)
    groups = small.inputs()
    assert [len({len(tokens) for tokens in group}) for group in groups] == [1] * len(groups)
    for group in groups:
        assert len(program(group[-1])) == len(group[-1])


def record(**values: Any) -> dict[str, Any]:
    size = {"layers": 1, "dimensions": 9, "heads": 1, "parameters": 2_000_000, "block_parameters": 50, "non_zeros": 20}
    right = {"inputs": 10, "wrong": 0, "wrong_besides_none": 0}
    common = {"status": "done", "cold": 1.0, "compile": 0.5, "memory": 40.0, "size": size}
    return {**common, "unpadded": right, "padded": right, **values}


@pytest.mark.slow
def test_the_report_says_what_was_stopped_reached_and_missed(tmp_path: Path) -> None:
    ours = record(called_1=200.0, called_512=2000.0, functions=0.1, filling=0.1)
    wrong = {"inputs": 10, "wrong": 7, "wrong_besides_none": 3}
    measured = {
        "reverse 4,5 original": record(
            cold=20.0, compile=1.0, called_1=1.0, jitted_1=100.0, jitted_512=4.0, padded=wrong
        ),
        "reverse 50,50 original": {"status": "stopped", "start": 20.0},
        "reverse 100,100 original": {"status": "skipped", "reason": "stopped at a smaller size"},
        "dyck1 4,5 original": {"status": "absent", "reason": "not in the original's library"},
        "dyck1 4,5 level 1": {"status": "failed", "reason": "LimitError: too large"},
        "dyck1 4,5 level 2": ours,
    }
    for size in ("4,5", "50,50", "100,100"):
        measured |= {f"reverse {size} level 1": ours, f"reverse {size} level 2": ours}
    about = {"machine": "m", "ours": {"python": "3", "numpy": "2"}, "original": {"jax": "1"}}
    (tmp_path / "results.json").write_text(json.dumps({"about": about, "limit": 120, "cases": measured}))
    done = run("--report", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| cold start ≥ 10× | reached: 2 of 2; median 20×, lowest 20× (reverse at (4, 5))" in text
    assert "| compile ≥ 10× at (4, 5) | **missed**: 0 of 1; median 2.0×, lowest 2.0×" in text
    assert "sort, shuffle_dyck2 at (50, 50) | reached: 1 of 1; median >200×" in text
    assert "the original as users call it | reached: 1 of 1; median 200×" in text
    assert "the original jitted | **missed**: 0 of 1; median 2.0×" in text
    assert "over a million parameters | reached: 3 of 3; median 4.0×" in text
    assert "| original, stopped after 120 s |" in text
    assert "| original, skipped: stopped at a smaller size |" in text
    assert "| level 1, failed: LimitError: too large |" in text
    assert "7 of 10 (3 besides `None`)" in text
    for name in ("ratios-level1", "ratios-level2", "sizes", "mismatches"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
    again = run("--report", "--out", str(tmp_path))
    assert again.returncode == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text


@pytest.mark.slow
def test_quick_run(tmp_path: Path) -> None:
    done = run("--quick", "--programs", "hist", "--out", str(tmp_path))
    if "pip could not install" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    measured = json.loads((tmp_path / "results.json").read_text())["cases"]
    assert len(measured) == 3
    for name, found in measured.items():
        assert found["status"] == "done", name
        assert found["cold"] > found["compile"] > 0
        assert found["called_1"] > 0
        if "level" in name:
            assert found["unpadded"]["wrong"] == found["padded"]["wrong"] == 0
            assert found["unpadded"]["inputs"] == 1364
    assert "Targets" in (tmp_path / "README.md").read_text(encoding="utf-8")
