"""Changes compiled models a little, again and again, and compares the checker's verdicts with runs on every input.

    python benchmarks/mutants.py -o docs/certificate/mutants.json --mutants 100000 --minutes 30
    python benchmarks/mutants.py -o part3.json --part 3/10 --minutes 30        for several processors
    python benchmarks/mutants.py -o docs/certificate/mutants.json --merge part*.json

A harmful mutant (wrong on some input) that is accepted would be a hole in the proof; each is listed. The script goes on
where the file ends, so that a campaign can be run in pieces; a file of another checker is refused. The result for a
seed does not depend on the pieces. A file is complete after each chunk of 50 mutants. The exit status is 1 if a harmful
mutant was accepted.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tracr
import tracr_check
from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import EveryInput, check_parts, parts_of, trials
from tracr.rasp.expressions import SOp
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr.writing import write_file

LENGTH, RUNS, CHUNK, RANDOM = 3, 2_000, 50, 30
FILES = sorted(Path(tracr_check.__file__).parent.glob("*.py"))
CHECKER = hashlib.sha256(b"".join(file.read_bytes() for file in FILES)).hexdigest()


def main() -> None:
    """Run chunks of mutants until there are enough, or the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the JSON file of the results")
    parser.add_argument("--mutants", type=int, default=100_000, help="how many in all")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0, help="draws other random programs and mutants")
    parser.add_argument("--part", default="0/1", help="only every so manieth model: which, and of how many")
    parser.add_argument("--merge", nargs="+", type=Path, default=[], help="files of other parts to put into one")
    given = parser.parse_args()
    models: dict[str, Any] = {}
    for path in (given.output, *given.merge):
        if path.exists():
            known = json.loads(path.read_text())
            if known["checker"] != CHECKER:
                raise SystemExit(f"{path} has results of another checker: delete it, or name another file")
            models |= known["models"]
    if not given.merge:
        run(models, given)
    write(given.output, models)
    total = total_of(models)
    print(json.dumps(total, indent=1))
    if total["unsound"]:
        sys.exit(1)


def run(models: dict[str, Any], given: argparse.Namespace) -> None:
    """Add chunks of mutants, to each model in turn."""
    end = time.monotonic() + 60 * given.minutes
    part, of = map(int, given.part.split("/"))
    cases = dict(subjects(given.seed, part, of))
    print(f"{len(cases)} models", flush=True)
    for number in range(given.mutants // of // CHUNK):
        name, turn = [*cases][number % len(cases)], number // len(cases)
        found = models.setdefault(name, {"chunks": 0, "counts": {}, "unsound": []})
        if turn >= found["chunks"]:
            add_chunk(found, cases[name], f"{name} {turn}{f' seed {given.seed}' if given.seed else ''}")
            write(given.output, models)
        if time.monotonic() > end:
            break


def subjects(seed: int = 0, part: int = 0, of: int = 1) -> Iterator[tuple[str, SavedParts]]:
    """Models that are small enough to be run on every input, and that the checker accepts."""
    for place, (name, (program, vocab)) in enumerate(programs(seed).items()):
        if place % of != part:
            continue
        for level, causal in itertools.product((0, 1, 2), (False, True)):
            try:
                parts = parts_of(tracr.compile(program, vocab, LENGTH, level=level, causal=causal))
            except tracr.TracrError:
                continue
            outputs = {number for _, number in parts.model["program"]["outputs"]}
            finite = all(s["domain"]["kind"] == "finite" for s in parts.model["program"]["sops"] if s["id"] in outputs)
            with tempfile.TemporaryDirectory() as folder:
                if finite and 0 < EveryInput(parts).count <= RUNS and check_parts(parts, Path(folder)).accepted:
                    yield f"{name} level {level}{' causal' if causal else ''}", parts


def programs(seed: int = 0) -> dict[str, tuple[SOp, Sequence[Any]]]:
    """The library, and random programs."""
    found: dict[str, tuple[SOp, Sequence[Any]]] = {}
    for name, example in EXAMPLES.items():
        if len(example.vocab) ** LENGTH <= RUNS:
            found[name] = example.made_for(example.vocab, LENGTH).program, example.vocab
    for number in range(seed * RANDOM, (seed + 1) * RANDOM):
        vocab = ("a", "b", "c") if number % 2 else (1, 2, 3)
        found[f"random {number}"] = random_program(number, max_ops=5, vocab=vocab, max_seq_len=LENGTH), vocab
    return found


def add_chunk(found: dict[str, Any], parts: SavedParts, key: str) -> None:
    """Add the outcomes of some mutants: how many of each kind were harmful and accepted."""
    counts = Counter(found["counts"])
    with tempfile.TemporaryDirectory() as folder:
        for outcome in trials(parts, CHUNK, tuple(key.encode()), Path(folder)):
            harm = "harmful" if outcome.wrong else "harmless"
            counts[f"{outcome.mutant.kind}, {harm}, {'accepted' if outcome.verdict.accepted else 'rejected'}"] += 1
            if outcome.unsound:
                found["unsound"].append(f"{key}: {outcome.mutant.what}: wrong on {outcome.wrong}")
                print(f"UNSOUND {found['unsound'][-1]}", flush=True)
    found["counts"] = dict(sorted(counts.items()))
    found["chunks"] += 1


def total_of(models: dict[str, Any]) -> dict[str, Any]:
    """The sums over all models."""
    total: Counter[str] = Counter()
    for one in models.values():
        total.update(one["counts"])
    return {
        "mutants": sum(total.values()),
        "harmful": sum(count for name, count in total.items() if "harmful" in name),
        "harmful and accepted": sum(count for name, count in total.items() if "harmful, accepted" in name),
        "counts": dict(sorted(total.items())),
        "unsound": [line for one in models.values() for line in one["unsound"]],
    }


def write(path: Path, models: dict[str, Any]) -> None:
    """Write the results with their sums."""
    content = {"checker": CHECKER, "total": total_of(models), "models": models}
    write_file(path, (json.dumps(content, indent=1) + "\n").encode(), make_folder=True)


if __name__ == "__main__":
    main()
