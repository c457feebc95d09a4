"""auto-circuit's own converter of Tracr models takes ours, in an environment of its own (`make slow` builds it).

auto-circuit depends on `tracr-pypi`, which has the import name `tracr` too: there our package is installed last.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tracr
from tracr.rasp import programs, rasp
from tracr.rasp.interpreter import evaluate

pytestmark = pytest.mark.slow

PYTHON = Path(os.environ.get("TRACR_COMPARE_PYTHON", Path(__file__).parents[2] / ".venv-compare" / "bin" / "python"))
MACHINE = Path(__file__).with_name("compare_machine.py")
PROGRAMS = {
    "reverse": (programs.make_reverse(rasp.tokens), 3 + 3**2 + 3**3 + 3**4 + 3**5),
    "xproportion": (programs.make_frac_prevs(rasp.tokens == "x"), 4 + 4**2 + 4**3 + 4**4 + 4**5),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the other environment says."""
    if not PYTHON.exists():
        pytest.skip("no environment with auto-circuit: `make slow` builds one")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    folder = tmp_path_factory.mktemp("compare")
    done = subprocess.run(
        [PYTHON, MACHINE], capture_output=True, encoding="utf-8", cwd=folder, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_our_package_is_the_one_that_is_imported(found: dict[str, Any]) -> None:
    """Installed last, it is over the original's files, and not this checkout."""
    assert Path(found["tracr"]).is_relative_to(PYTHON.parents[1])
    assert found["version"] == tracr.__version__


@pytest.mark.parametrize("task", PROGRAMS)
def test_auto_circuit_computes_the_program(task: str, found: dict[str, Any]) -> None:
    """On all inputs its model takes."""
    program, inputs = PROGRAMS[task]
    assert len(found[task]) == inputs
    for xs, answer in found[task]:
        assert answer == pytest.approx([float(value) for value in evaluate(program, xs)], abs=1e-5)
