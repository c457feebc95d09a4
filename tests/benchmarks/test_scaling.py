from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hanging import HUNG

pytestmark = pytest.mark.repository

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scaling.py"


@pytest.mark.slow
def test_quick_run() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, timeout=HUNG)
    assert done.returncode == 0, done.stderr
    assert "| hist, length 10 | 16 to 64 |" in done.stdout
    assert "refused" not in done.stdout
