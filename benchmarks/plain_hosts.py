"""Hosts without known answers: which components of plainly trained transformers do parts explain?

    python benchmarks/plain_training.py FOLDER --device cuda
    python benchmarks/plain_hosts.py FOLDER [-o docs/replacing/plain.json] [--only sort-0]

A row for every head, for all heads of a layer together and for every MLP whose mean ablation costs at least 5 points of
accuracy. It has the part of the library (and of the task's own compiled model) that `explain` puts first, its report,
and whether the replacement is more accurate than the host. Rows that the file already has are kept.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from plain_training import PlainHost, data_of, load_host

from tracr import graft
from tracr.graft.controls import ablations_of
from tracr.graft.replacing import workbench

COSTS, SHARE = 0.05, 0.75


def rows_of(folder: Path, most: int, whole: bool) -> list[dict[str, Any]]:
    """A row for each component of a host; `whole` leaves out single heads."""
    task, host = load_host(folder)
    curves = json.loads((folder / "training.json").read_text())["curves"]
    name, _, seed = folder.name.rpartition("-")
    about = {"task": name, "seed": int(seed), "steps": curves[-1][0], "held_out": round(curves[-1][4], 4)}
    options = task.model.options
    own = graft.parts_of(task.model, f"{name} (own)")
    library = graft.library(options.vocab, options.max_seq_len, causal=options.causal)
    data = data_of(task)
    data = data.rows(np.random.default_rng(0).permutation(len(data))[:most])
    heads = range(host.cfg.n_heads)
    places: list[Any] = []
    for layer in range(task.layers):
        single = [] if whole else [f"blocks.{layer}.attn.{head}" for head in heads]
        places += [f"blocks.{layer}.attn", *single, f"blocks.{layer}.mlp"]
    return [{**about, "at": at, **explained(host, at, [*own, *library], data)} for at in places]


def explained(host: PlainHost, at: str, parts: list[Any], data: Any) -> dict[str, Any]:
    """What the best part recovers at a component that matters."""
    bench = workbench(host, at, data, share=SHARE, seed=0)

    def rights(logits: Any) -> float:
        return float(bench.test.score(logits)[0].sum() / bench.test.scored.sum())

    cost = rights(bench.test_record.logits) - rights(ablations_of(bench, np.random.default_rng(0))["mean"])
    found: dict[str, Any] = {"cost": round(cost, 4)}
    if cost < COSTS:
        return found
    best = graft.explain(host, at, parts, data, share=SHARE).best
    report = graft.replace(host, at, best.part, data, share=SHARE).report()
    share = None if report.recovered is None else report.recovered.to_dict()
    raises = report.line("replaced").accuracy - report.line("host").accuracy
    print(f"  {at}: costs {cost:.3f}; {best.part.title} recovers {report.recovered}; {report.verdict}", flush=True)
    return {
        **found,
        "part": best.part.title,
        "does": best.part.sentence,
        "recovered": share,
        "counts": report.counts,
        "verdict": report.verdict,
        "raises": round(raises, 4),
        "reads": report.reads,
    }


def main() -> None:
    """Explain the hosts that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/plain.json"))
    parser.add_argument("--only", nargs="+", help="names of hosts")
    parser.add_argument("--inputs", type=int, default=1_500)
    parser.add_argument("--whole", action="store_true", help="whole sub-layers only, no single heads")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(row["task"], row["seed"]) for row in rows}
    for folder in sorted(given.folder.iterdir()):
        name, _, seed = folder.name.rpartition("-")
        if (given.only and folder.name not in given.only) or (name, int(seed)) in done or name.startswith("add_mod"):
            continue
        rows += rows_of(folder, given.inputs, given.whole)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        aside = given.out.with_suffix(".tmp")
        aside.write_text(json.dumps(rows, indent=1) + "\n")
        aside.replace(given.out)


if __name__ == "__main__":
    main()
