"""Compares the two starts of a twin's training, random and compiled weights: the steps until each seed is admitted.

    python benchmarks/twin_starts.py -o docs/natural/starts.json [--programs shift_by count] [--seeds 3] [--steps 3000]
    python benchmarks/twin_starts.py -o docs/natural/starts.json --table

Runs that are in the file already are skipped. Steps are counted in rounds of 1,000. Runs on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from tracr import natural
from tracr.natural.admission import Rate
from tracr.natural.cases import case_of

STARTS = ("random", "compiled")


def main() -> None:
    """Train the runs that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--programs", nargs="+", default=["shift_by", "count"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--table", action="store_true", help="only print the table")
    given = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"  # JAX is imported on first use
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    if given.table:
        print(table(rows))
        return
    there = {(row["program"], row["start"]) for row in rows}
    for name in given.programs:
        for start in STARTS:
            if (name, start) not in there:
                rows += trained(name, start, given)
                given.out.write_text(json.dumps(rows, indent=1) + "\n")


def trained(name: str, start: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one program and start; the seeds train together."""
    model, began, used = case_of(name).load(), time.time(), time.process_time()

    def show(progress: natural.Progress) -> None:
        worst = " ".join(f"{one:.3f}" for one in progress.worst)
        print(f"{name} {start} {progress.done} steps {time.time() - began:.0f} s  worst {worst}", flush=True)

    sizes: dict[str, Any] = {
        "width": 32,
        "d_head": 16,
        "d_mlp": 64,
        "steps": given.steps,
        "batch": given.batch,
        "spare": 1.0,
    }
    made = natural.twins(model, range(given.seeds), start=start, progress=show, **sizes)
    seconds, processor = round(time.time() - began, 1), round(time.process_time() - used, 1)
    return [
        {
            "program": name,
            "start": start,
            "seed": twin.seed,
            "admitted": twin.admitted,
            "steps": twin.steps,
            "most_steps": given.steps,
            "missed_sites": len(twin.admission.missed),
            "sites": len(twin.admission.sites),
            **{size: value for size, value in sizes.items() if size != "steps"},
            "seconds": seconds,
            "processor": processor,
            "device": "CPU",
        }
        for twin in made
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """The steps until admission of each start, and how often the compiled start was faster."""
    lines = ["| program | random start: admitted after steps | compiled start |", "| --- | --- | --- |"]
    faster = pairs = 0
    for name in dict.fromkeys(row["program"] for row in rows):
        cells, runs = [name], [[row for row in rows if (row["program"], row["start"]) == (name, one)] for one in STARTS]
        for seeds in runs:
            cells.append(", ".join(f"{row['steps']:,}" if row["admitted"] else "not" for row in seeds))
        lines.append(f"| {' | '.join(cells)} |")
        for random, compiled in zip(*runs, strict=True):
            pairs += 1
            least = random["steps"] if random["admitted"] else random["most_steps"] + 1
            faster += compiled["admitted"] and compiled["steps"] < least
    return "\n".join([*lines, "", f"compiled start in fewer rounds: {faster} of {pairs}, {Rate(faster, pairs)}"])


if __name__ == "__main__":
    main()
