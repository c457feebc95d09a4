"""Trains twins of many programs: how many seeds are admitted, how long it takes, which ones fail and why.

    python benchmarks/twins.py -o results/ [--programs "hist;hist2"] [--seeds 4] [--seconds 540]

Each program's twins train together. A finished program is skipped, a stopped one continues from its checkpoint.
`results.json` holds a row for each program and seed. Admitted twins have the AUROC of exact edge patching, edges needed
alone against inert ones (`tracr.natural.edge_auroc`); saved twins that lack it get it first. Meant for a GPU; small
programs also train on a CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

import tracr
from tracr import natural
from tracr.natural.edge_patching import EdgeSeparation
from tracr.rasp import programs, rasp

T = rasp.tokens


class Case(NamedTuple):
    """A program, and what it is compiled for."""

    program: rasp.SOp
    vocab: Sequence[Any]
    max_seq_len: int
    causal: bool = False


CASES = {
    **{name: Case(one.program, one.vocab, one.max_seq_len) for name, one in programs.EXAMPLES.items()},
    # larger vocabularies than the library's, so that values are not known from the others'
    "hist": Case(programs.make_hist(), "abcd", 5),
    "hist2": Case(programs.make_hist2(), "abcd", 5),
    "count_less_freq": Case(programs.make_count_less_freq(2), "abcd", 5),
    "sort_unique": Case(programs.make_sort_unique(T, T), [1, 2, 3, 4, 5, 6], 4),
    "shuffle_dyck": Case(programs.make_shuffle_dyck(["()"]), "()", 6),
    "previous, causal": Case(programs.shift_by(1, T), "abcd", 5, causal=True),
    "hist, causal": Case(programs.make_hist(), "abcd", 5, causal=True),
}


def main() -> None:
    """Train the missing programs and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder for results, twins and checkpoints")
    parser.add_argument("--programs", default=";".join(CASES), help="names, separated by semicolons")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no program after this time")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    table = given.out / "results.json"
    rows = json.loads(table.read_text()) if table.exists() else []
    began = time.time()
    for row in rows:
        saved = given.out / f"{row['program']}-{row['seed']}"
        if row["admitted"] and "auroc" not in row and saved.exists() and time.time() - began < given.seconds:
            twin = tracr.load(saved)
            assert isinstance(twin, natural.TwinModel)
            row.update(separated(natural.edge_auroc(twin)))
            write(table, rows)
    for name in given.programs.split(";"):
        if any(row["program"] == name for row in rows) or time.time() - began > given.seconds:
            continue
        rows += train(name, given)
        write(table, rows)


def write(table: Path, rows: list[dict[str, Any]]) -> None:
    """Replace the table."""
    aside = table.with_suffix(".tmp")
    aside.write_text(json.dumps(rows, indent=1) + "\n")
    aside.replace(table)


def separated(found: EdgeSeparation) -> dict[str, Any]:
    """The columns of a row on exact edge patching: shares of pairs in which the twin's answer changes."""
    return {
        "auroc": found.auroc,
        "needed": len(found.needed),
        "inert": len(found.inert),
        "undecided": len(found.undecided),
        "lowest_needed": min(found.needed.values(), default=None),
        "highest_inert": max(found.inert.values(), default=None),
    }


def train(name: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one program."""
    case = CASES[name]
    model = tracr.compile(case.program, case.vocab, case.max_seq_len, case.causal)
    began = time.time()

    def show(progress: natural.Progress) -> None:
        worst = " ".join(f"{one:.3f}" for one in progress.worst)
        print(f"{name} {progress.done:6d} {time.time() - began:5.0f} s  worst {worst}  {progress.admitted}", flush=True)

    made = natural.twins(
        model,
        range(given.seeds),
        steps=given.steps,
        batch=given.batch,
        checkpoint=given.out / f"{name}.training",
        progress=show,
    )
    for twin in made:
        twin.save(given.out / f"{name}-{twin.seed}")
    admitted = [twin for twin in made if twin.admitted]
    scores = {twin.seed: separated(one) for twin, one in zip(admitted, natural.edge_aurocs(admitted), strict=True)}
    rows = []
    for twin in made:
        admission = twin.admission
        rows.append(
            {
                "program": name,
                "seed": twin.seed,
                "layers": model.n_layers,
                "sites": len(admission.sites),
                "admitted": twin.admitted,
                "steps": twin.steps,
                "seconds": round(time.time() - began, 1),
                "accuracy": admission.accuracy.share,
                "missed": [str(site) for site in admission.missed[:10]],
                "device": jax.devices()[0].device_kind,
                **scores.get(twin.seed, {}),
            }
        )
        print(twin, f"{time.time() - began:.0f} s", flush=True)
    return rows


if __name__ == "__main__":
    main()
