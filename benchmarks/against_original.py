"""This compiler beside the original Tracr (the package `tracr-pypi`), in one run on one machine.

    python benchmarks/against_original.py                all of the library, five sizes: about half an hour
    python benchmarks/against_original.py --quick        three programs at the smallest size
    python benchmarks/against_original.py --report       no measurements: table and plots of those there are

Each side of each case runs in a process of its own, and is stopped after 120 seconds; the original runs in an
environment of its own (both have the import name `tracr`), which is made the first time. Measurements are kept in
results.json as they come, so an interrupted run goes on where it was; --fresh forgets them. The tables and the plots
go next to it, into docs/benchmarks unless --out says otherwise. Needs matplotlib (extra `viz`).
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
    """Measure what is not measured yet, then report."""
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
    parser.add_argument("--report", action="store_true", help="measure nothing, write table and plots again")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, metavar="NAME", help="only these programs")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a side is stopped (120)")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "benchmarks", help="docs/benchmarks")
    parser.add_argument("--environment", type=Path, help="where the original's environment is, or is made")
    return parser.parse_args()


if __name__ == "__main__":
    main()
