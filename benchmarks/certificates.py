"""Measures the coverage of the checker: which models it accepts, in what time and memory, and why it rejects others.

    python benchmarks/certificates.py library large --rows rows.jsonl     a line for each model; goes on where it ends
    python benchmarks/certificates.py random --seed 8191 --part 0/4 --rows part0.jsonl
    python benchmarks/certificates.py --merge *.jsonl --write docs/certificate/coverage.json

Groups: `library` (every program at its own size, levels 0, 1, 2), `large` (vocabulary and length 30), `long` (length
100, levels 1 and 2), `thousand` (length 1,000, levels 1 and 2), `random` (`tracr.random_program`, default controls),
`composite` and `causal` (other controls), `rotated`, `norms` and `gpt2` (variants of the library), `rotated16` and
`norms16` (the same at (8, 16)), `bfloat16` and `float16` (the library at (8, 16), compiled for the format and checked
in its arithmetic). Each check is a process of its own, with one thread: its processor time (with that of starting
Python and numpy) and its largest memory are measured. Rows name the digest of the checker's files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tracr
import tracr_check
from tracr.certificate.certifying import HINTS_VERSION
from tracr.certificate.hints import hints
from tracr.errors import TracrError
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr_check.files import CERTIFICATE, CONTENT, sha256

LEVELS = (0, 1, 2)
SLOW = 10.0
FILES = sorted(Path(tracr_check.__file__).parent.glob("*.py"))
CHECKER = hashlib.sha256(b"".join(file.read_bytes() for file in FILES)).hexdigest()
CHECK = """
import json, sys, time
from pathlib import Path
from tracr_check import check_folder
found = check_folder(sys.argv[1])
status = Path("/proc/self/status").read_text()
most = int(status.partition("VmHWM:")[2].split()[0]) // 1024
row = {"accepted": found.accepted, "seconds": round(time.process_time(), 2), "megabytes": most}
print(json.dumps(row | ({} if found.accepted else {"reason": str(found)[:250]})))
"""


class Job(NamedTuple):
    """A program to compile and check."""

    name: str
    program: Any
    vocab: Any
    length: int
    levels: tuple[int, ...] = LEVELS
    causal: bool = False
    variant: str = ""
    dtype: str = "float32"


def library(variant: str = "") -> Iterator[Job]:
    """Every example at its own size."""
    for name, example in EXAMPLES.items():
        yield Job(name, example.program, example.vocab, example.max_seq_len, variant=variant)


def grown(
    length: int, letters: int, levels: tuple[int, ...], dtype: str = "float32", variant: str = ""
) -> Iterator[Job]:
    """Every example made for a longer length and a larger vocabulary of its kind; its own where that is impossible."""
    for name, example in EXAMPLES.items():
        own = list(example.vocab)
        if all(type(token) is int for token in own):
            larger: list[Any] = list(dict.fromkeys([*own, *range(1, letters + 1)]))[:letters]
        else:
            larger = list(dict.fromkeys([*own, *(chr(97 + place) for place in range(letters))]))[:letters]
        for vocab in (larger, own):
            try:
                made = example.made_for(vocab, length)
            except TracrError:
                continue
            yield Job(name, made.program, vocab, length, levels, variant=variant, dtype=dtype)
            break


def drawn(seed: int, count: int, kind: str) -> Iterator[Job]:
    """Random programs, at levels 0, 1, 2 in turn: with default controls, with composite selectors, or causal."""
    for number in range(count):
        if kind == "random":
            program: Any = tracr.random_program([seed, number])
        else:
            program = random_program([seed, number], composite=kind == "composite", causal=kind == "causal")
        yield Job(f"{kind} {seed} {number}", program, "abc", 5, (LEVELS[number % 3],), kind == "causal")


def checked(job: Job, level: int, arithmetic: str, padded: bool, patience: int) -> dict[str, Any]:
    """Compile and check a program at a level; a row of the results."""
    row: dict[str, Any] = {"name": job.name, "level": level}
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(patience)
    try:
        model = tracr.compile(job.program, job.vocab, job.length, level=level, causal=job.causal, dtype=job.dtype)
    except TracrError as error:
        return {**row, "not compiled": str(error)[:150]}
    except TimeoutError:
        return {**row, "not compiled": f"compiling took more than {patience} seconds"}
    finally:
        signal.alarm(0)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "model")
        match job.variant:
            case "rotated":
                model.rotated(seed=1).certify(arithmetic, padded).save(saved)
            case "norms":
                model.with_layer_norm().certify(arithmetic, padded).save(saved)
            case "gpt2":
                model.save_pretrained(saved, activation="relu")
            case _:
                save(model, saved, arithmetic, padded)
        found = subprocess.run([sys.executable, "-c", CHECK, str(saved)], capture_output=True, text=True, check=False)
    if found.returncode:
        return {**row, "accepted": False, "reason": f"the checker failed: {found.stderr[-200:]}"}
    return {**row, **json.loads(found.stdout)}


def _too_long(*_: object) -> None:
    raise TimeoutError


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a group is summed up to: the models, how many are accepted, times, memory, and those that are refused."""
    tried = [row for row in rows if "not compiled" not in row]
    times = [row.get("seconds", 0.0) for row in tried]
    return {
        "checker": sorted({row["checker"] for row in rows}),
        "models": len(tried),
        "accepted": sum(row["accepted"] for row in tried),
        "levels": {
            str(level): [sum(row["accepted"] for row in mine), len(mine)]
            for level in LEVELS
            if (mine := [row for row in tried if row["level"] == level])
        },
        "seconds, 95 %": round(float(np.quantile(times, 0.95)), 2) if times else 0.0,
        "seconds, most": round(max(times, default=0.0), 2),
        "under 10 seconds": sum(one < SLOW for one in times),
        "megabytes, most": max((row.get("megabytes", 0) for row in tried), default=0),
        "slow": [[row["name"], row["level"], row["seconds"]] for row in tried if row.get("seconds", 0.0) >= SLOW],
        "rejected": [[row["name"], row["level"], row["reason"]] for row in tried if not row["accepted"]],
        "not compiled": [[row["name"], row["level"], row["not compiled"]] for row in rows if "not compiled" in row],
    }


def save(model: Any, folder: Path, arithmetic: str, padded: bool) -> None:
    """A saved model with its certificate."""
    model.save(folder, overwrite=True)
    digests = {name: sha256((folder / name).read_bytes()) for name in CONTENT}
    certificate = {
        "version": HINTS_VERSION,
        "sha256": digests,
        "arithmetic": arithmetic,
        "padded": padded,
        **hints(model),
    }
    (folder / CERTIFICATE).write_text(json.dumps(certificate))


def jobs_of(group: str, seed: int, count: int) -> Iterator[Job]:
    """The programs of a group."""
    match group:
        case "library":
            return library()
        case "large":
            return grown(30, 30, LEVELS)
        case "long":
            return grown(100, 4, (1, 2))
        case "rotated" | "norms" | "gpt2":
            return library(group)
        case "rotated16" | "norms16":
            return grown(16, 8, LEVELS, variant=group.removesuffix("16"))
        case "bfloat16" | "float16":
            return grown(16, 8, LEVELS, group)
        case "thousand":
            return grown(1000, 4, (1, 2))
        case "random" | "composite" | "causal":
            return drawn(seed, count, group)
        case _:
            raise SystemExit(f"there is no group {group}")


def main() -> None:
    """Measure the groups on the command line, or merge what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=977)
    parser.add_argument("--part", default="0/1", help="measure only every so manieth program: which, and of how many")
    parser.add_argument("--arithmetic", default="float32")
    parser.add_argument("--unpadded", action="store_true")
    parser.add_argument("--only", help="names of programs, with commas between them")
    parser.add_argument("--patience", type=int, default=3600, help="seconds for compiling one model")
    parser.add_argument("--rows", type=Path, help="a file of rows that is added to")
    parser.add_argument("--merge", nargs="+", type=Path, default=[], help="files of rows to sum up")
    parser.add_argument("--write", type=Path, help="a JSON file; groups that are not summed up now are kept")
    given = parser.parse_args()
    rows = [json.loads(line) for path in given.merge for line in path.read_text().splitlines()]
    known = [json.loads(line) for line in given.rows.read_text().splitlines()] if _there(given.rows) else []
    if any(row["checker"] != CHECKER for row in known):
        raise SystemExit(f"{given.rows} has results of another checker: delete it, or name another file")
    done = {(row["group"], row["name"], row["level"]) for row in known}
    part, parts = map(int, given.part.split("/"))
    for group in given.groups:
        label = group if given.arithmetic == "float32" else f"{group} {given.arithmetic}"
        for number, job in enumerate(jobs_of(group, given.seed, given.count)):
            for level in job.levels:
                skipped = given.only and job.name not in given.only.split(",")
                if skipped or number % parts != part or (label, job.name, level) in done:
                    continue
                row = {"group": label, "checker": CHECKER}
                arithmetic = given.arithmetic if job.dtype == "float32" else job.dtype
                row |= checked(job, level, arithmetic, not given.unpadded, given.patience)
                known.append(row)
                print(json.dumps(row)[:300], flush=True)
                if given.rows:
                    with given.rows.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    rows += known
    groups = {name: [row for row in rows if row["group"] == name] for name in dict.fromkeys(r["group"] for r in rows)}
    found = json.loads(given.write.read_text()) if _there(given.write) else {}
    for name, mine in groups.items():
        found[name] = summary(mine)
        print(name, json.dumps(found[name])[:1500])
    if given.write:
        given.write.write_text(json.dumps(found, indent=1) + "\n")


def _there(path: Path | None) -> bool:
    return path is not None and path.exists()


if __name__ == "__main__":
    main()
