"""Trains twins of small programs on two CPU cores until they are admitted: seconds and steps of each seed.

    python benchmarks/twins_cpu.py [-o FILE.json] [--programs hist sort_unique] [--seeds 1] [--cores 2]

Seeds of a program train together. `seconds` is the time until the last seed is admitted, with compiling, drawing
lessons and admission; `first round` is the part before the end of the first 1,000 steps; `processor` is the time of
all cores, which other programs on the machine change less; `load` is the machine's mean number of running processes,
this one included, over the minute before the start and before the end.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Print a line for each seed; write them as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--programs", nargs="+", default=["hist", "sort_unique"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--spare", type=float, default=0.0, help="1: keep spare components quiet")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    rows: list[dict[str, Any]] = []
    for name in given.programs:
        rows += trained(name, given)
        if given.out is not None:
            given.out.write_text(json.dumps(rows, indent=1) + "\n")


def trained(name: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one program."""
    from tracr import natural  # after JAX was told which device to use
    from tracr.natural.cases import case_of

    case = case_of(name)
    model = case.load()
    began, used, load = time.time(), time.process_time(), os.getloadavg()[0]
    rounds: list[float] = []

    def show(progress: natural.Progress) -> None:
        rounds.append(time.time() - began)
        worst = " ".join(f"{one:.3f}" for one in progress.worst)
        print(f"{name} {progress.done:6d} steps {rounds[-1]:6.0f} s  worst {worst}", flush=True)

    made = natural.twins(
        model, range(given.seeds), steps=given.steps, batch=given.batch, spare=given.spare, progress=show
    )
    seconds, processor = time.time() - began, time.process_time() - used
    rows = []
    for twin in made:
        row = {
            "program": name,
            "tokens": len(case.vocab),
            "length": case.max_seq_len,
            "seed": twin.seed,
            "admitted": twin.admitted,
            "steps": twin.steps,
            "batch": given.batch,
            "spare": given.spare,
            "seconds": round(seconds, 1),
            "first round": round(rounds[0], 1),
            "processor": round(processor, 1),
            "cores": given.cores,
            "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        }
        print(row, flush=True)
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
