"""Measures the coverage of the checker: which models it accepts, in what time, and why it rejects the others.

    python benchmarks/certificates.py random --count 1000 --seed 977
    python benchmarks/certificates.py library large long composite causal --write docs/certificate/coverage.json

Groups: `library` (every program at its own size, levels 0, 1, 2), `large` (vocabulary and length 30), `long` (length
100, levels 1 and 2), `random` (`tracr.random_program`, default controls), `composite` and `causal` (other controls).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tracr
from tracr.certificate.certifying import HINTS_VERSION
from tracr.certificate.hints import hints
from tracr.errors import TracrError
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr_check import check_folder
from tracr_check.files import CERTIFICATE, CONTENT, sha256

LEVELS = (0, 1, 2)


class Job(NamedTuple):
    """A program to compile and check."""

    name: str
    program: Any
    vocab: Any
    length: int
    levels: tuple[int, ...] = LEVELS
    causal: bool = False


def library() -> Iterator[Job]:
    """Every example at its own size."""
    for name, example in EXAMPLES.items():
        yield Job(name, example.program, example.vocab, example.max_seq_len)


def grown(length: int, letters: int, levels: tuple[int, ...]) -> Iterator[Job]:
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
            yield Job(name, made.program, vocab, length, levels)
            break


def drawn(seed: int, count: int, kind: str) -> Iterator[Job]:
    """Random programs, at levels 0, 1, 2 in turn: with default controls, with composite selectors, or causal."""
    for number in range(count):
        if kind == "random":
            program: Any = tracr.random_program([seed, number])
        else:
            program = random_program([seed, number], composite=kind == "composite", causal=kind == "causal")
        yield Job(f"{kind} {seed} {number}", program, "abc", 5, (LEVELS[number % 3],), kind == "causal")


def measured(
    jobs: Iterable[Job], arithmetic: str, padded: bool, slow: float = 10.0, verbose: bool = False
) -> dict[str, Any]:
    """Compile and check each program at each level."""
    accepted, times, refused, late = 0, [], [], []
    reasons: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as parent:
        for job in jobs:
            for level in job.levels:
                try:
                    model = tracr.compile(job.program, job.vocab, job.length, level=level, causal=job.causal)
                except TracrError as error:
                    refused.append([job.name, level, str(error)[:100]])
                    continue
                folder = Path(parent) / "model"
                save(model, folder, arithmetic, padded)
                start = time.process_time()
                verdict = check_folder(folder)
                times.append(time.process_time() - start)
                accepted += verdict.accepted
                if verbose:
                    print(f"{job.name} {level}: {times[-1]:.2f} s, {str(verdict)[:150]!r}", flush=True)
                if times[-1] > slow:
                    late.append([job.name, level, round(times[-1], 1)])
                if not verdict.accepted:
                    kind = re.sub(r"[-+]?[\d.]+(e[-+]?\d+)?", "#", verdict.reason)[:80]
                    reasons.setdefault(kind, []).append([job.name, level, verdict.reason[:200], verdict.place[:200]])
    return {
        "models": len(times),
        "accepted": accepted,
        "share": round(accepted / max(1, len(times)), 4),
        "seconds, 95 %": round(float(np.quantile(times, 0.95)), 2) if times else 0.0,
        "seconds, most": round(max(times, default=0.0), 2),
        "slow": late,
        "not compiled": len(refused),
        "rejected": dict(sorted(reasons.items(), key=lambda one: -len(one[1]))),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
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
        case "random" | "composite" | "causal":
            return drawn(seed, count, group)
        case _:
            raise SystemExit(f"there is no group {group}")


def main() -> None:
    """Measure the groups on the command line and print or write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="+")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=977)
    parser.add_argument("--arithmetic", default="float32")
    parser.add_argument("--unpadded", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", help="names of programs, with commas between them")
    parser.add_argument("--write", type=Path, help="a JSON file; groups that are not measured now are kept")
    given = parser.parse_args()
    found = json.loads(given.write.read_text()) if given.write and given.write.exists() else {}
    for group in given.groups:
        jobs: Iterable[Job] = jobs_of(group, given.seed, given.count)
        if given.only:
            jobs = [job for job in jobs if job.name in given.only.split(",")]
        result = measured(jobs, given.arithmetic, not given.unpadded, verbose=given.verbose)
        name = group if given.arithmetic == "float32" else f"{group} {given.arithmetic}"
        found[name] = {"seed": given.seed, **result} if group in ("random", "composite", "causal") else result
        print(name, json.dumps({key: value for key, value in result.items() if key != "rejected"}))
        for reason, cases in result["rejected"].items():
            print(f"  {len(cases):4d}  {reason}  {cases[:4]}"[:700])
        if given.write:
            given.write.parent.mkdir(parents=True, exist_ok=True)
            given.write.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
