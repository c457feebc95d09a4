"""Changes compiled models a little, again and again, and compares the checker's verdicts with runs on every input.

    python benchmarks/mutants.py -o docs/certificate/mutants.json --mutants 100000 --minutes 30
    python benchmarks/mutants.py -o part3.json --part 3/10 --minutes 30        for several processors
    python benchmarks/mutants.py -o docs/certificate/mutants.json --merge part*.json

Small models of few layers get most of the mutants, so that many can be tried. A harmful mutant (wrong on some input)
that is accepted would be a hole in the proof; each is listed. The script goes on where the file ends, so that a
campaign can be run in pieces; a file of another checker is refused. The result for a seed does not depend on the
pieces. A file is complete after each chunk of mutants. The exit status is 1 if a harmful mutant was accepted.
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
from typing import Any, NamedTuple

import tracr
import tracr_check
from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import EveryInput, check_parts, parts_of, trials
from tracr.rasp.expressions import SOp
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr.writing import write_file

LENGTH, RUNS, CHUNK, RANDOM = 3, 2_000, 50, 200
FILES = sorted(Path(tracr_check.__file__).parent.glob("*.py"))
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # for the folders that are checked
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
    end, known = time.monotonic() + 60 * given.minutes, dict[str, SavedParts | None]()
    part, of = map(int, given.part.split("/"))
    cases = list(subjects(given.seed))[part::of]
    for turn in itertools.count():
        for case in cases:
            if case.name not in known:
                known[case.name] = small_model(case)
            parts, found = known[case.name], models.get(case.name, {"chunks": 0, "counts": {}, "unsound": []})
            if parts is not None and turn >= found["chunks"]:
                models[case.name] = found
                add_chunk(found, parts, f"{case.name} {turn}{f' seed {given.seed}' if given.seed else ''}")
                write(given.output, models)
            if time.monotonic() > end or sum(sum(one["counts"].values()) for one in models.values()) >= given.mutants:
                return
        if not models:
            return


class Subject(NamedTuple):
    """A program to compile."""

    name: str
    program: SOp
    vocab: Sequence[Any]
    level: int
    causal: bool


def subjects(seed: int = 0) -> Iterator[Subject]:
    """Random programs, and the library at all levels, causal and not."""
    for number in range(seed * RANDOM, (seed + 1) * RANDOM):
        vocab: Sequence[Any] = (("a", "b"), (1, 2), ("a", "b", "c"), (1, 2, 3))[number % 4]
        program = random_program(number, max_ops=1 + number % 3, vocab=vocab, max_seq_len=LENGTH)
        yield Subject(f"random {number}", program, vocab, number // 4 % 3, number % 5 == 4)
    for name, example in EXAMPLES.items():
        if len(example.vocab) ** LENGTH <= RUNS:
            program = example.made_for(example.vocab, LENGTH).program
            for level, causal in itertools.product((0, 1, 2), (False, True)):
                text = f"{name} level {level}{' causal' if causal else ''}"
                yield Subject(text, program, example.vocab, level, causal)


def small_model(case: Subject) -> SavedParts | None:
    """The compiled model, if it has layers, can be run on every input, and is accepted."""
    try:
        model = tracr.compile(case.program, case.vocab, LENGTH, level=case.level, causal=case.causal)
    except tracr.TracrError:
        return None
    parts = parts_of(model)
    outputs = {number for _, number in parts.model["program"]["outputs"]}
    finite = all(s["domain"]["kind"] == "finite" for s in parts.model["program"]["sops"] if s["id"] in outputs)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        fits = layers_of(parts) and finite and 0 < EveryInput(parts).count <= RUNS
        return parts if fits and check_parts(parts, Path(folder)).accepted else None


def layers_of(parts: SavedParts) -> int:
    """The number of layers."""
    return len(parts.hints["layers"])


def add_chunk(found: dict[str, Any], parts: SavedParts, key: str) -> None:
    """Add the outcomes of some mutants: how many of each kind were harmful and accepted."""
    counts = Counter(found["counts"])
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for outcome in trials(parts, max(5, CHUNK // layers_of(parts) ** 2), tuple(key.encode()), Path(folder)):
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
