"""Runs the normal tier with coverage, and writes the share of lines and branches that it runs, by package.

    python tools/coverage_report.py build/coverage.txt             the whole normal tier
    python tools/coverage_report.py build/coverage.txt --resume    go on with a run that was stopped
    python tools/coverage_report.py build/coverage.txt --cases 2   a lower bound: 2 cases of each parametrised test
    python tools/coverage_report.py build/zoo.txt tests/zoo        only these tests

The tests run in parts, each in a process of its own. If tests fail, the report is written all the same, names the parts
and the exit status is 1.

Settings: `[tool.coverage.run]` in pyproject.toml. Kernel C code, pages in JavaScript and the slow tier are not counted.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "build" / "coverage"
NO_TESTS = 5  # pytest's exit status: a folder with slow tests only
FRAMEWORKS = ("jax", "onnx", "ray", "torch", "transformer_lens", "transformers")


def parts() -> list[list[str]]:
    """The normal tier: each folder of tests, the single files, and the doctests."""
    folders = sorted(path for path in (ROOT / "tests").iterdir() if any(path.rglob("test_*.py")))
    files = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("test_*.py"))
    return [*([path.relative_to(ROOT).as_posix()] for path in folders), files, ["src"], ["docs", "README.md"]]


def measured(run: list[list[str]], cases: int | None, resume: bool = False) -> dict[str, int]:
    """Run the tests, part by part, and keep their data; the exit status of each part."""
    record = DATA / "parts.json"
    if not resume:
        shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True, exist_ok=True)
    done: dict[str, int] = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    plugin = [] if cases is None else ["-p", "few_cases"]
    path = os.pathsep.join([str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": path, "TRACR_CASES": str(cases)}
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", *plugin]  # not xdist: it may end unsaved
    for tests in run:
        if " ".join(tests) not in done:
            done[" ".join(tests)] = subprocess.run([*command, *tests], cwd=ROOT, check=False, env=variables).returncode
            record.write_text(json.dumps(done), encoding="utf-8")
    return {name: status for name, status in done.items() if status not in (0, NO_TESTS)}


def shares() -> dict[str, tuple[int, int]]:
    """For each package, lines and branches that were run, and how many there are; of all processes together."""
    if any(DATA.glob("data.*")):
        subprocess.run([sys.executable, "-m", "coverage", "combine", "-q", "--append"], cwd=ROOT, check=True)
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


def shown(found: Mapping[str, tuple[int, int]], tests: list[str], cases: int | None, failed: Mapping[str, int]) -> str:
    """The table as text, with the day, the commit, and what was not installed."""
    total = (sum(one[0] for one in found.values()), sum(one[1] for one in found.values()))
    rows = [*sorted(found.items()), ("all", total)]
    lines = [f"{name:28} {100 * part / max(1, whole):5.1f} % of {whole:6,}" for name, (part, whole) in rows]
    part = " of ".join(["the normal tier", *([" ".join(tests)] if tests else [])])
    if cases is not None:
        part += f", at most {cases} cases of each parametrised test (a lower bound)"
    missing = [name for name in FRAMEWORKS if importlib.util.find_spec(name) is None]
    when = f"{datetime.datetime.now(datetime.UTC).date()}, commit {commit()}"
    without = f"; without {', '.join(missing)}" if missing else ""
    problems = [f"tests failed in {name.partition(' ')[0]} (exit status {status})" for name, status in failed.items()]
    return "\n".join([f"Lines and branches run by {part}; {when}{without}", *problems, "", *lines, ""])


def commit() -> str:
    """The commit that is checked out, or a word for none."""
    words = ["git", "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("tests", nargs="*", help="all of the normal tier if none are named")
    parser.add_argument("--cases", type=int, help="at most so many cases of each parametrised test")
    parser.add_argument("--resume", action="store_true", help="leave out parts that have been run already")
    given = parser.parse_args()
    failed = measured([given.tests] if given.tests else parts(), given.cases, given.resume)
    text = shown(shares(), given.tests, given.cases, failed)
    print(text)
    given.report.parent.mkdir(parents=True, exist_ok=True)
    given.report.write_text(text, encoding="utf-8")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
