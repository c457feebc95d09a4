"""How much memory a process has had."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["peak"]


def peak() -> float:
    """The most memory this process has had, in MiB; Linux counts what its parent had into `ru_maxrss`."""
    status = Path("/proc/self/status")
    if status.is_file():
        return (
            next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 2**10
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
