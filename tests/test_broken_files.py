"""The test suite itself: a test file that cannot be imported fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parent.parent


def test_a_broken_test_file_is_an_error(tmp_path: Path) -> None:
    """It was once reported as skipped, so a renamed function could have switched off its tests."""
    broken = tmp_path / "test_broken.py"
    broken.write_text("from tracr.rasp import nothing_of_that_name\n\n\ndef test_something():\n    pass\n")
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    found = subprocess.run([*command, str(broken)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "1 error" in found.stdout, found.stdout
