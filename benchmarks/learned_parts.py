"""Learned parts of the library's programs: which models verify, how large their code errors are, and how long it takes.

    python benchmarks/learned_parts.py [-o docs/natural/learned_parts.json] [--programs "hist;sort"] [--seeds 3]
    python benchmarks/learned_parts.py --superposed -o docs/natural/superposed_parts.json --seeds 1
    python benchmarks/learned_parts.py -o docs/natural/superposed_parts.json --table

With --superposed, labels get directions that overlap, in as few dimensions as the parts allow. --table prints a file.
Rows that the file already has are kept, so a stopped run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tracr
from tracr import natural
from tracr.rasp import programs, rasp


class LibraryCase(NamedTuple):
    """A program, and what it is compiled for."""

    program: rasp.SOp
    vocab: Sequence[Any]
    max_seq_len: int
    causal: bool = False


CASES = {
    **{name: LibraryCase(one.program, one.vocab, one.max_seq_len) for name, one in programs.EXAMPLES.items()},
    # larger vocabularies than the library's examples have
    "hist": LibraryCase(programs.make_hist(), "abcd", 5),
    "hist2": LibraryCase(programs.make_hist2(), "abcd", 5),
    "count_less_freq": LibraryCase(programs.make_count_less_freq(2), "abcd", 5),
    "sort_unique": LibraryCase(programs.make_sort_unique(rasp.tokens, rasp.tokens), [1, 2, 3, 4, 5, 6], 4),
    "shuffle_dyck": LibraryCase(programs.make_shuffle_dyck(["()"]), "()", 6),
    "previous, causal": LibraryCase(programs.shift_by(1, rasp.tokens), "abcd", 5, causal=True),
    "hist, causal": LibraryCase(programs.make_hist(), "abcd", 5, causal=True),
}


def main() -> None:
    """Learn the missing models and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/natural/learned_parts.json"))
    parser.add_argument("--programs", default=";".join(CASES), help="names, separated by semicolons")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--superposed", action="store_true", help="labels in as few dimensions as possible")
    parser.add_argument("--table", action="store_true", help="print the file as a table, and learn nothing")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads(given.out.read_text())))
        return
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    for name in given.programs.split(";"):
        for seed in range(given.seeds):
            if not any((row["program"], row["seed"]) == (name, seed) for row in rows):
                rows.append(learn(name, seed, given.superposed))
                print(rows[-1], flush=True)
                aside = given.out.with_suffix(".tmp")
                aside.write_text(json.dumps(rows, indent=1) + "\n")
                aside.replace(given.out)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line per row of superposed models."""
    lines = ["| program | labels | dimensions | verified | largest code error |", "|---|---|---|---|---|"]
    for row in rows:
        error = f"{row['code_error']:.1g}" if row["verified"] else ""
        verified = f"all {row['inputs']:,} inputs" if row["verified"] and row["exhaustive"] else "refused"
        lines.append(f"| {row['program']} | {row['labels']} | {row.get('d_model', '')} | {verified} | {error} |")
    return "\n".join(lines)


def learn(name: str, seed: int, superposed: bool) -> dict[str, Any]:
    """The row of one program and seed."""
    case = CASES[name]
    model = tracr.compile(case.program, case.vocab, case.max_seq_len, case.causal)
    row: dict[str, Any] = {
        "program": name,
        "seed": seed,
        "tokens": len(case.vocab),
        "max_seq_len": case.max_seq_len,
        "layers": model.n_layers,
    }
    if superposed:
        row |= {"superposed": True, "labels": model.d_model}
    began, used = time.time(), time.process_time()
    try:
        learned = natural.learned_parts(model, seed=seed, superposed=superposed)
    except tracr.TracrError as error:
        row |= {"verified": False, "refused": error.diagnostic.what}
    else:
        worst = max(learned.parts, key=lambda part: part.margins)
        row |= {
            "verified": True,
            "statement": str(learned.verified),
            "inputs": learned.verified.inputs,
            "exhaustive": learned.verified.exhaustive,
            "parts": len(learned.parts),
            "parameters": learned.n_parameters,
            "code_error": learned.code_error,
            "margins": worst.margins,
            "largest_in": worst.name,
        }
        if superposed:
            row |= {"d_model": learned.d_model, "mixed": len(learned.mixed)}
    seconds = {"seconds": round(time.time() - began, 1), "cpu_seconds": round(time.process_time() - used, 1)}
    return row | seconds | {"cores": os.cpu_count()}


if __name__ == "__main__":
    main()
