"""Compares this compiler with the original Tracr (the package `tracr-pypi`), in one run on one machine.

    python benchmarks/against_original.py                the whole library, five sizes: about half an hour
    python benchmarks/against_original.py --quick        three programs at the smallest size
    python benchmarks/against_original.py --report       no measurements: tables and plots of the existing ones

Each side of each case runs in its own process and is stopped after 120 seconds. The original runs in its own
environment (both have the import name `tracr`), which is made the first time. Measurements are written to results.json
one by one, so an interrupted run can be continued; --fresh deletes them. The tables and the plots go into the same
folder, by default docs/benchmarks (--out). Needs matplotlib (extra `viz`).
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[0] = str(HERE / "sides")

from cases import PROGRAMS, SIZES, Case
from environment import MissingOriginal, original_python, versions
from plots import draw
from report import write
from running import SIDES, Results, run_case
from tqdm import tqdm

QUICK = ("hist", "reverse", "shuffle_dyck2")


def main() -> None:
    """Do the missing measurements, then report."""
    options = _arguments()
    results = Results(options.out / "results.json", fresh=options.fresh)
    if not options.report:
        sizes = SIZES[:1] if options.quick else SIZES
        chosen = options.programs or (QUICK if options.quick else PROGRAMS)
        _measure(results, [Case(name, *size) for size in sizes for name in chosen], options)
    write(results, options.out / "README.md")
    draw(results, options.out)


def _measure(results: Results, cases: list[Case], options: argparse.Namespace) -> None:
    try:
        python = original_python(options.environment)
    except MissingOriginal as error:
        sys.exit(str(error))
    results.describe(options.limit, versions(python))
    todo = [(case, side) for case in cases for side in SIDES if results.get(case, side) is None]
    with tqdm(todo, unit="run") as bar:
        for case, side in bar:
            bar.set_description(f"{case.program} {case.size} {side}")
            earlier = [results.get(Case(case.program, *size), side) for size in SIZES if size < case.size]
            results.put(case, side, run_case(case, side, python, options.limit, earlier))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)} at the smallest size")
    parser.add_argument("--report", action="store_true", help="measure nothing, write tables and plots again")
    parser.add_argument("--fresh", action="store_true", help="delete earlier measurements")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, metavar="NAME", help="only these programs")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a side is stopped (120)")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "benchmarks", help="docs/benchmarks")
    parser.add_argument("--environment", type=Path, help="the folder of the original's environment")
    return parser.parse_args()


if __name__ == "__main__":
    main()
