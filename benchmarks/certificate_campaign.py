"""Runs all measurements of docs/certificate.md with one checker, side by side on many processors.

    python benchmarks/certificate_campaign.py OUT --processes 16 --minutes 9      goes on where OUT ends
    python benchmarks/certificate_campaign.py OUT --write                         docs/certificate/*.json, from OUT

First every group of `certificates.py`, the longest checks first, in as many parts as it has programs; then mutants
(`mutants.py`) in all processes until the time is over. OUT/rows.jsonl and OUT/mutants.json have the results; the parts
are in OUT/parts. A part that the end of the time stops is measured again in the next run, but for its finished models.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "certificate"
LIBRARY = 25  # programs
GROUPS = {
    **dict.fromkeys(("thousand", "long", "large", "bfloat16", "float16"), LIBRARY),
    **dict.fromkeys(("norms16", "rotated16", "norms", "rotated", "gpt2", "library"), 8),
    "random": 32,
}
"""The groups, longest checks first, and in how many parts each is measured."""
SEED = 412019  # of random programs: drawn for this campaign, and not looked at before


def main() -> None:
    """Measure for some time, or write what was measured into the documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--mutants", type=int, default=100_000, help="at least so many, if there is time")
    parser.add_argument("--groups", nargs="*", default=list(GROUPS))
    parser.add_argument("--write", action="store_true", help="write docs/certificate/*.json, and measure nothing")
    given = parser.parse_args()
    (given.out / "parts").mkdir(parents=True, exist_ok=True)
    if given.write:
        write(given.out)
        return
    end = time.monotonic() + 60 * given.minutes
    jobs = [(group, part) for group in given.groups for part in range(GROUPS[group])]
    processes = given.processes
    with ThreadPoolExecutor(processes) as pool:
        for job in [pool.submit(measured, given.out, group, part, end) for group, part in jobs]:
            job.result()
        left, share = (end - time.monotonic() - 10) / 60, -(-given.mutants // processes)
        parts = [f"{part}/{processes}" for part in range(processes)] if left > 0 else []
        for job in [pool.submit(mutated, given.out, part, share, left) for part in parts]:
            job.result()
    merged(given.out)


def measured(out: Path, group: str, part: int, end: float) -> None:
    """Measure one part of a group, or what is left of it."""
    rows = out / "parts" / f"{group}-{part}.jsonl"
    done = out / "parts" / f"{group}-{part}.done"
    left = end - time.monotonic()
    if done.exists() or left < 5:
        return
    arguments = [group, "--part", f"{part}/{GROUPS[group]}", "--seed", str(SEED), "--rows", str(rows)]
    try:
        found = subprocess.run(command("certificates.py", *arguments), capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        print(f"{group} {part}: stopped", flush=True)
        return
    if found.returncode:
        print(f"{group} {part} failed: {found.stderr.decode()[-500:]}", flush=True)
    else:
        done.touch()


def mutated(out: Path, part: str, count: int, minutes: float) -> None:
    """Try mutants of one part of the models."""
    path = out / "parts" / f"mutants-{part.replace('/', '-')}.json"
    arguments = ["-o", str(path), "--part", part, "--mutants", str(count), "--minutes", f"{minutes:.3f}"]
    found = subprocess.run(command("mutants.py", *arguments), capture_output=True, check=False)
    if found.returncode:
        print(f"mutants {part}: {(found.stdout + found.stderr).decode()[-500:]}", flush=True)


def command(script: str, *arguments: str) -> list[str]:
    """A script of this folder, run by this Python."""
    return [sys.executable, str(HERE / script), *arguments]


def merged(out: Path) -> None:
    """Put the parts together, and say how many there are."""
    rows = [line for path in sorted((out / "parts").glob("*.jsonl")) for line in path.read_text().splitlines()]
    (out / "rows.jsonl").write_text("".join(f"{line}\n" for line in rows))
    counts: dict[str, list[int]] = {}
    for row in map(json.loads, rows):
        tried = counts.setdefault(row["group"], [0, 0])
        tried[0] += bool(row.get("accepted"))
        tried[1] += "not compiled" not in row
    for group in GROUPS:
        done = len(list((out / "parts").glob(f"{group}-*.done")))
        print(f"{group}: {counts.get(group, [0, 0])} accepted of checked; {done} of {GROUPS[group]} parts", flush=True)
    parts = sorted(map(str, (out / "parts").glob("mutants-*.json")))
    if parts:
        subprocess.run(command("mutants.py", "-o", str(out / "mutants.json"), "--merge", *parts), check=False)


def write(out: Path) -> None:
    """Write the files that the page is made from; `certificate_page.py` then writes the page."""
    rows, coverage, mutants = out / "rows.jsonl", DOCS / "coverage.json", out / "mutants.json"
    subprocess.run(command("certificates.py", "--merge", str(rows), "--write", str(coverage)), check=True)
    (DOCS / "mutants.json").write_bytes(mutants.read_bytes())


if __name__ == "__main__":
    main()
