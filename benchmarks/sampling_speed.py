"""Measures how many random programs are compiled and checked in a second, at the default controls.

    python benchmarks/sampling_speed.py [--count 600] [--ray] [-o docs/benchmarks/sampling.json]
    python benchmarks/sampling_speed.py --page docs/datasets.md docs/benchmarks/sampling.json   # the table of the page

Each line is one way to do it, all in one run, on the same programs:

- compile only: a loop of `compile_model` over programs that were drawn before, the limit for the others;
- draw, compile, verify: a bare loop, with nothing stored;
- tracr sample --compile: everything the command does (draw, key of the meaning, compile, verify on all 363 inputs, key
  of the behaviour, labels, ground truth, files), in one process, over two processes, and over Ray; and the same without
  labels and ground truth.

The measure is processor time for each program, of this process and its workers, because other work on the machine
changes it less than time on the clock. "2 cores" is the number of programs that two processors make in a second at this
cost; "clock" is what the clock showed, with whatever else the machine was doing. On a busy machine processor time is
larger too, because processes share caches: the load average is noted before and after. Every model is compared with the
vectorised interpreter on all inputs, padded and unpadded, and a wrong one ends the benchmark.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from tracr.datasets import Controls
from tracr.datasets.building import build_shards, outcomes
from tracr.datasets.candidates import DrawTask, draw
from tracr.datasets.program_file import drawn_into
from tracr.datasets.sampling import Sampling
from tracr.datasets.settings import Settings
from tracr.model.compiling import compile_model
from tracr.workers import SERIAL, Workers, over_processes, over_ray

T = TypeVar("T")
R = TypeVar("R")
WARMING = 8  # tasks before the measurement, which import modules and fill caches
CONTROLS, SETTINGS = Controls(), Settings()
LEAN = Settings(truth=False)
HEAD = "| way | processor time for each | on two processors, by this | by the clock |"


class Timed:
    """Workers that add up the processor time of their tasks."""

    def __init__(self, workers: Workers) -> None:
        self.workers, self.seconds = workers, 0.0

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        for result, seconds in self.workers.map(functools.partial(timed, function), tasks):
            self.seconds += seconds if self.workers is not SERIAL else 0.0  # this process counts its own time
            yield result


def timed(function: Callable[[T], R], task: T) -> tuple[R, float]:
    """A result and the processor time it took."""
    start = time.process_time()
    result = function(task)
    return result, time.process_time() - start


MEASURED: list[dict[str, Any]] = []


def report(name: str, count: int, seconds: float, clock: float, limit: float | None) -> float:
    """Print a line and keep it; returns the milliseconds of processor time for each program."""
    each = 1000 * seconds / count
    MEASURED.append({"way": name, "programs": count, "processor_seconds": seconds, "clock_seconds": clock})
    share = "" if limit is None else f"{each / limit:9.2f}x"
    print(f"{name:<42} {each:8.2f} ms {2000 / each:9.0f} {count / clock:9.0f} {share}")
    return each


def loops(count: int) -> float:
    """The two bare loops; returns the limit."""
    options = CONTROLS.options(SETTINGS.level)
    best: list[tuple[float, float]] = []
    for _ in range(3):
        programs = [CONTROLS.program((0, number)) for number in range(count)]
        clock, start = time.perf_counter(), time.process_time()
        for program in programs:
            compile_model({"output": program}, options)
        best.append((time.process_time() - start, time.perf_counter() - clock))
    limit = report("compile only", count, *min(best), None)
    best.clear()
    for _ in range(3):
        clock, start = time.perf_counter(), time.process_time()
        for number in range(count):
            model = compile_model({"output": CONTROLS.program((0, number))}, options)
            assert model.verify(SETTINGS.budget)
        best.append((time.process_time() - start, time.perf_counter() - clock))
    report("draw, compile, verify", count, *min(best), limit)
    return limit


def sampled(
    name: str, count: int, crew: AbstractContextManager[Workers], limit: float, settings: Settings = SETTINGS
) -> None:
    """Everything the command does, with these workers, twice; the faster is reported."""
    best: list[tuple[float, float]] = []
    with crew as given, tempfile.TemporaryDirectory() as folder:
        for _ in given.map(draw, (DrawTask(1, 20 * place, CONTROLS, None, settings) for place in range(WARMING))):
            pass
        for turn in range(2):
            workers, models = Timed(given), Path(folder) / str(turn)
            clock, start = time.perf_counter(), time.process_time()
            drawn = drawn_into(Path(folder) / f"{turn}.jsonl", Sampling(0, CONTROLS), count, workers, settings)
            build_shards(models, drawn, settings, workers)
            seconds = time.process_time() - start + workers.seconds
            best.append((seconds, time.perf_counter() - clock))
            assert outcomes(models) == {"compiled": count}
    report(name, count, *min(best), limit)


def table(found: dict[str, Any]) -> list[str]:
    """The measurements as a table for the page."""
    lines = [HEAD, "|---|---|---|---|"]
    for row in found["measured"]:
        each, clock = row["processor_seconds"] / row["programs"], row["programs"] / row["clock_seconds"]
        lines.append(f"| {row['way']} | {1000 * each:.1f} ms | {2 / each:.0f} a second | {clock:.0f} a second |")
    return lines


def fill(page: Path, found: dict[str, Any]) -> None:
    """Replace the table of the page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = lines.index(HEAD)
    stop = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    page.write_text("\n".join([*lines[:start], *table(found), *lines[stop:]]) + "\n", encoding="utf-8")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=600, help="how many programs (default: 600)")
    parser.add_argument("--ray", action="store_true", help="also over Ray")
    parser.add_argument("-o", "--output", type=Path, help="write the measurements to this JSON file")
    parser.add_argument("--page", nargs=2, type=Path, metavar=("PAGE", "JSON"), help="only fill in the table of a page")
    chosen = parser.parse_args()
    if chosen.page:
        fill(chosen.page[0], json.loads(chosen.page[1].read_text(encoding="utf-8")))
        return
    before = os.getloadavg()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print(f"{'':<42} {'each':>11} {'2 cores':>9} {'clock':>9} {'limit':>9}")
    limit = loops(min(300, chosen.count))
    sampled("tracr sample --compile", chosen.count, over_processes(1), limit)
    sampled("tracr sample --compile --no-truth", chosen.count, over_processes(1), limit, LEAN)
    sampled("tracr sample --compile --jobs 2", chosen.count, over_processes(2), limit)
    sampled("tracr sample --compile --no-truth --jobs 2", chosen.count, over_processes(2), limit, LEAN)
    if chosen.ray:
        sampled("tracr sample --compile --ray", chosen.count, over_ray(), limit)
        sampled("tracr sample --compile --no-truth --ray", chosen.count, over_ray(), limit, LEAN)
    if chosen.output:
        machine = {"processors": os.cpu_count(), "python": platform.python_version()}
        loads = {"load_before": before[0], "load_after": os.getloadavg()[0]}
        text = json.dumps({**machine, **loads, "measured": MEASURED}, indent=1)
        chosen.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
