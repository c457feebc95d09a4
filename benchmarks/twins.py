"""Trains twins of many programs: how many seeds are admitted, how long it takes, which ones fail and why.

    python benchmarks/twins.py -o results/ [--programs "hist;hist2"] [--seeds 4] [--seconds 540]

Each program's twins train together. A finished program is skipped, a stopped one continues from its checkpoint.
`results.json` holds a row for each program and seed. Meant for a GPU; small programs also train on a CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax

import tracr
from tracr import natural
from tracr.natural.cases import CASES


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
    for name in given.programs.split(";"):
        if any(row["program"] == name for row in rows) or time.time() - began > given.seconds:
            continue
        rows += train(name, given)
        aside = table.with_suffix(".tmp")
        aside.write_text(json.dumps(rows, indent=1) + "\n")
        aside.replace(table)


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
    rows = []
    for twin in made:
        twin.save(given.out / f"{name}-{twin.seed}")
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
            }
        )
        print(twin, f"{time.time() - began:.0f} s", flush=True)
    return rows


if __name__ == "__main__":
    main()
