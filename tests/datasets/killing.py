"""Commands in processes of their own, some of them killed on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.hanging import HUNG

MAIN = "import typer; from tracr.cli.sampling import sample; typer.run(sample)"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", MAIN, *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "random"}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), env=environment(), capture_output=True, text=True, check=False)


def kill_when(ready: Callable[[], bool], *arguments: object) -> None:
    """Start the command and kill it as soon as `ready`."""
    process = subprocess.Popen(command(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + HUNG
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
