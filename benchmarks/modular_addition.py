"""Modular addition trained past its generalisation: does its MLP compute a product of waves?

    python benchmarks/plain_training.py FOLDER --tasks add_mod_113 --device cuda
    python benchmarks/modular_addition.py FOLDER [-o docs/replacing/modular.json]

The published account of such models: the embedding holds cosines and sines of the terms at a few key frequencies,
attention adds them, the MLP makes cosines and sines of the sum of the terms, and the logits add these up. Here it is a
library of parts, compiled for each frequency:

- *waves*: a head that averages cosine and sine over both terms;
- *product*: neurons that read the averages, in 17 levels, and write their product, cos²(difference) times the cosine
  and sine of the sum;
- *phase*: the same, divided by its length: the cosine and sine of the sum;
- *table*: neurons that read both terms and write their sum.

Key frequencies are those with at least 10 % of the largest power in the embedding. Maps are fitted on pairs that the
host was trained on, and every number is of held-out pairs. Controls are as many other frequencies, and those of
`report`. The stages "half" and "most" are weights on the way, when 50 % and 90 % of held-out pairs were right.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from plain_training import data_of, load_host

import tracr
from tracr import graft
from tracr.rasp import rasp

LEVELS, KEY = 8, 0.1
STAGES = ("half", "most", "final")


def waves(prime: int, frequency: int, *, unit: bool) -> Any:
    """The compiled model of one frequency: levels of the mean cosine and sine, and what the MLP makes of them."""
    turn = 2 * math.pi * frequency / prime
    both = rasp.Select(rasp.indices, rasp.Full(1), rasp.Comparison.LEQ)

    def level(function: Any, name: str) -> Any:
        wave = rasp.Map(lambda one: round(LEVELS * function(turn * one)) if isinstance(one, int) else 0, rasp.tokens)
        mean = rasp.Aggregate(both, rasp.numerical(wave.named(f"{name} {frequency}")), default=0)
        return rasp.Map(round, rasp.numerical(mean.named(f"mean {name} {frequency}"))).named(
            f"level {name} {frequency}"
        )

    def product(one: float, other: float) -> complex:
        found = complex(one, other) ** 2 / LEVELS**2
        return found / max(abs(found), 1e-9) if unit and abs(found) > 0.01 else found

    cosine, sine = level(math.cos, "cosine"), level(math.sin, "sine")
    outputs = {
        "cosine of the sum": lambda one, other: round(product(one, other).real, 2),
        "sine of the sum": lambda one, other: round(product(one, other).imag, 2),
    }
    programs = {
        f"{name} {frequency}": rasp.numerical(rasp.SequenceMap(function, cosine, sine).named(f"{name} {frequency}"))
        for name, function in outputs.items()
    }
    return tracr.compile(programs, [*range(prime), "="], 3)


def powers(host: Any, prime: int) -> np.ndarray[Any, Any]:
    """The power of each frequency in the embedding of numbers; its numbers are the first ids after BOS."""
    embedded = host.embed.weight.detach().numpy()[host.first : host.first + prime]
    found = np.abs(np.fft.rfft(embedded - embedded.mean(axis=0), axis=0)) ** 2
    return np.asarray(found.sum(axis=1)[1:])


def parts_for(prime: int, frequencies: list[int]) -> dict[str, list[Any]]:
    """The parts of some frequencies, by what they are."""
    product, phase = ({one: waves(prime, one, unit=unit) for one in frequencies} for unit in (False, True))
    found: dict[str, list[Any]] = {"waves": [], "product": [], "phase": []}
    for one in frequencies:
        mine = graft.parts_of(product[one], f"waves {one}")
        found["waves"].append(next(part for part in mine if part.kind == "head"))
        for name, model in (("product", product[one]), ("phase", phase[one])):
            whole = [part for part in graft.parts_of(model, f"{name} {one}") if part.name.endswith(".mlp")]
            found[name].append(whole[-1])
    return found


def rows_of(folder: Path, stage: str, pairs: int) -> Iterator[dict[str, Any]]:
    """The rows of one host: for each explanation what it recovers, and by how much it raises accuracy."""
    prime = int(folder.name.split("_")[-1].partition("-")[0])
    task, host = load_host(folder, stage)
    host.first = int(task.model.encode([[0, 0, "="]])[0][1])
    training = json.loads((folder / "training.json").read_text())
    data, known = data_of(task), np.array(training["trained_on"])
    rng = np.random.default_rng(0)
    unseen = np.setdiff1d(np.arange(len(data)), known)
    fit, test = (data.rows(np.sort(rng.permutation(one)[:pairs])) for one in (known, unseen))
    power = powers(host, prime)
    key = [int(one) + 1 for one in np.flatnonzero(power >= KEY * power.max())]
    others = [one for one in rng.permutation(np.arange(1, prime // 2 + 1)).tolist() if one not in key][: len(key)]
    about: dict[str, Any] = {"host": folder.name, "stage": stage, "frequencies": key, "others": sorted(others)}
    about["key_power"] = round(float(power[np.array(key) - 1].sum() / power.sum()), 4)
    made, wrong = parts_for(prime, key), parts_for(prime, sorted(others))
    table = [part for part in graft.parts_of(task.model, "table") if part.name.endswith(".mlp")]
    claims = [
        ("blocks.0.mlp", "product", made["product"]),
        ("blocks.0.mlp", "phase", made["phase"]),
        ("blocks.0.mlp", "other phases", wrong["phase"]),
        ("blocks.0.attn", "waves", made["waves"]),
        ("blocks.0.attn", "other waves", wrong["waves"]),
        ("blocks.0.mlp", "table", table),
    ]
    for at, name, parts in claims:
        if parts:
            yield {**about, "at": at, "claim": name, "pairs": pairs, **measured(host, at, parts, fit, test)}


def measured(host: Any, at: str, parts: list[Any], fit: Any, test: Any) -> dict[str, Any]:
    """One replacement on held-out pairs."""
    grafted = graft.replace(host, at, parts, fit, share=0.9, tokens="scored")
    report = grafted.report(test)
    own, put = report.line("host"), report.line("replaced")
    return {
        "host_accuracy": round(own.accuracy, 4),
        "host_loss": round(own.loss, 4),
        "accuracy": round(put.accuracy, 4),
        "loss": round(put.loss, 4),
        "raises": round(put.accuracy - own.accuracy, 4),
        "cost": round(report.cost, 4),
        "recovered": None if report.recovered is None else report.recovered.to_dict(),
        "least_read": round(min(report.reads.values(), default=1.0), 4),
        "counts": report.counts,
        "verdict": report.verdict,
        "controls": {f"{one.kind}: {one.name}": round(one.accuracy, 4) for one in report.controls},
    }


def main() -> None:
    """Add the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/modular.json"))
    parser.add_argument("--stages", nargs="+", default=list(STAGES))
    parser.add_argument("--pairs", type=int, default=2_000, help="pairs to fit with, and pairs to test with")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(row["host"], row["stage"]) for row in rows}
    for folder, stage in itertools.product(sorted(given.folder.glob("add_mod_*")), given.stages):
        if (folder.name, stage) in done or not (folder / f"{stage}.safetensors").exists():
            continue
        for row in rows_of(folder, stage, given.pairs):
            rows.append(row)
            shown = ("host", "stage", "frequencies", "claim", "host_accuracy", "accuracy", "least_read", "verdict")
            print({name: row[name] for name in shown}, flush=True)
            aside = given.out.with_suffix(".tmp")
            aside.write_text(json.dumps(rows, indent=1) + "\n")
            aside.replace(given.out)


if __name__ == "__main__":
    main()
