"""Runs the normal tier with coverage, and writes the share of lines and branches that it runs, by package.

    python tools/coverage_report.py build/coverage.txt            all tests of the normal tier
    python tools/coverage_report.py build/zoo.txt tests/zoo       only these

Settings: `[tool.coverage.run]` in pyproject.toml. Kernel C code, pages in JavaScript and the slow tier are not counted.
"""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "build" / "coverage"


def measured(tests: list[str]) -> dict[str, tuple[int, int]]:
    """For each package, lines and branches that were run, and how many there are."""
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    run = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    subprocess.run([*run, *tests], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "coverage", "combine", "-q"], cwd=ROOT, check=True)
    table = DATA / "coverage.json"
    subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(table)], cwd=ROOT, check=True)
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, file in json.loads(table.read_text())["files"].items():
        parts = Path(name).parts
        inside = parts[parts.index("tracr" if "tracr" in parts else "tracr_check") :]
        package = "/".join(inside[:2]) if len(inside) > 2 else inside[0]
        summary = file["summary"]
        run_here = summary["covered_lines"] + summary["covered_branches"]
        there = summary["num_statements"] + summary["num_branches"]
        before = found[package]
        found[package] = (before[0] + run_here, before[1] + there)
    return dict(found)


def shown(found: dict[str, tuple[int, int]], tests: list[str]) -> str:
    """The table as text."""
    total = (sum(one[0] for one in found.values()), sum(one[1] for one in found.values()))
    rows = [*sorted(found.items()), ("all", total)]
    lines = [f"{name:28} {100 * part / max(1, whole):5.1f} % of {whole:6,}" for name, (part, whole) in rows]
    day = datetime.datetime.now(datetime.UTC).date()
    return "\n".join([f"Lines and branches run by the normal tier of {' '.join(tests)}, {day}", "", *lines, ""])


def main() -> None:
    """Measure, print and write."""
    tests = sys.argv[2:] or ["tests"]
    text = shown(measured(tests), tests)
    print(text)
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
