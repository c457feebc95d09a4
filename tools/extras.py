"""Whether all extras can be installed together: pip resolves them and installs nothing.

    python tools/extras.py [EXTRA ...]

It needs an index of packages, and minutes. Prints the versions that pip chose.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def names() -> list[str]:
    """The extras of pyproject.toml."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        return sorted(tomllib.load(file)["project"]["optional-dependencies"])


def resolved(extras: list[str]) -> dict[str, str]:
    """The version of every package that an installation with these extras would have."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        wanted = f"{ROOT}[{','.join(extras)}]"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--dry-run",
            "--ignore-installed",
            "--report",
            str(report),
        ]
        done = subprocess.run([*command, wanted], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the extras {', '.join(extras)} cannot be installed together:\n{done.stderr[-3000:]}")
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {one["metadata"]["name"]: one["metadata"]["version"] for one in found}


def main() -> None:
    """Resolve and print."""
    extras = sys.argv[1:] or names()
    found = resolved(extras)
    print(f"{len(found)} packages for {', '.join(extras)}:")
    print(", ".join(f"{name} {version}" for name, version in sorted(found.items())))


if __name__ == "__main__":
    main()
