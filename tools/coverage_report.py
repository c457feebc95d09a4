"""Runs the normal tier with coverage, and writes the share of lines and branches that it runs, by package.

    python tools/coverage_report.py build/coverage.txt             the whole normal tier
    python tools/coverage_report.py build/coverage.txt --cases 2   a lower bound: 2 cases of each parametrised test
    python tools/coverage_report.py build/zoo.txt tests/zoo        only these tests

Settings: `[tool.coverage.run]` in pyproject.toml. Kernel C code, pages in JavaScript and the slow tier are not counted.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "build" / "coverage"


def measured(tests: list[str], cases: int | None) -> dict[str, tuple[int, int]]:
    """For each package, lines and branches that were run, and how many there are."""
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    plugin = [] if cases is None else ["-p", "few_cases"]
    path = os.pathsep.join([str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": path, "TRACR_CASES": str(cases)}
    run = ["coverage", "run", "-m", "pytest", "-q", *plugin]  # not xdist: it may end its processes unsaved
    for words in ([*run, *tests], ["coverage", "combine", "-q"]):
        subprocess.run([sys.executable, "-m", *words], cwd=ROOT, check=True, env=variables)
    return shares()


def shares() -> dict[str, tuple[int, int]]:
    """The combined data of all processes, by package."""
    table = DATA / "coverage.json"
    command = [sys.executable, "-m", "coverage", "json", "-q", "-o", str(table)]
    subprocess.run([*command, f"--include={ROOT}/src/*"], cwd=ROOT, check=True)  # not the copies that tests make
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


def shown(found: dict[str, tuple[int, int]], tests: list[str], cases: int | None) -> str:
    """The table as text."""
    total = (sum(one[0] for one in found.values()), sum(one[1] for one in found.values()))
    rows = [*sorted(found.items()), ("all", total)]
    lines = [f"{name:28} {100 * part / max(1, whole):5.1f} % of {whole:6,}" for name, (part, whole) in rows]
    day = datetime.datetime.now(datetime.UTC).date()
    part = " of ".join(["the normal tier", *([" ".join(tests)] if tests else [])])
    if cases is not None:
        part += f", at most {cases} cases of each parametrised test (a lower bound)"
    return "\n".join([f"Lines and branches run by {part}; {day}", "", *lines, ""])


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("tests", nargs="*", help="all of the normal tier if none are named")
    parser.add_argument("--cases", type=int, help="at most so many cases of each parametrised test")
    given = parser.parse_args()
    text = shown(measured(given.tests, given.cases), given.tests, given.cases)
    print(text)
    given.report.parent.mkdir(parents=True, exist_ok=True)
    given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
