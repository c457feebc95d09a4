"""Modular addition trained past its generalisation: does its MLP compute a product of waves?

    python benchmarks/plain_training.py FOLDER --tasks add_mod_113 --device cuda
    python benchmarks/modular_addition.py FOLDER... [-o docs/replacing/modular.json] [--only add_mod_113-0] [--table]

The published account of such models: the embedding holds cosines and sines of the terms at a few key frequencies,
attention adds them, the MLP makes cosines and sines of the sum of the terms, and the logits add these up. Here it is a
library of parts, compiled for each frequency:

- *waves*: a head that averages cosine and sine, in 41 levels, over both terms;
- *product*: neurons that read the averages, in 17 levels, and write their product, cos²(difference) times the cosine
  and sine of the sum;
- *phase*: the same, divided by its length: the cosine and sine of the sum; *fine phase*, of averages in 41 levels;
- *table*: neurons that read both terms and write their sum.

Key frequencies are those with at least 10 % of the largest power in the embedding of the final weights. Maps are fitted
on pairs that the host was trained on, and every number is of held-out pairs. Controls are as many other frequencies,
and those of `report`. The stages "half" and "most" are weights on the way, when 50 % and 90 % of held-out pairs were
right.

*restricted* is the published experiment: nothing is replaced, but of the logits of all pairs, as functions of the two
terms, only the constant and the cosine and sine of the sum at the key frequencies are kept; *other restricted* keeps as
many other frequencies. It is measured on all held-out pairs.

`raises` is the accuracy with the replacement less that of the host, `lowers_loss` the host's loss less that with the
replacement, both with a 95 % bootstrap interval over pairs.
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
from tracr.graft.recovery import HostScore, Recovery
from tracr.rasp import rasp

LEVELS, FINE, KEY = 8, 20, 0.1
STAGES = ("half", "most", "final")
MLP, HEADS = "blocks.0.mlp", "blocks.0.attn"
PLACES = {
    "product": MLP,
    "phase": MLP,
    "fine phase": MLP,
    "other phases": MLP,
    "waves": HEADS,
    "other waves": HEADS,
    "table": MLP,
}
ROLES = {name: {"other phases": "phase", "other waves": "waves"}.get(name, name) for name in PLACES}
CLAIMS = ("restricted", "other restricted", *PLACES)


def waves(prime: int, frequency: int, levels: int, *, unit: bool) -> Any:
    """The compiled model of one frequency: levels of the mean cosine and sine, and what the MLP makes of them."""
    turn = 2 * math.pi * frequency / prime
    both = rasp.Select(rasp.indices, rasp.Full(1), rasp.Comparison.LEQ)

    def level(function: Any, name: str) -> Any:
        wave = rasp.Map(lambda one: round(levels * function(turn * one)) if isinstance(one, int) else 0, rasp.tokens)
        mean = rasp.Aggregate(both, rasp.numerical(wave.named(f"{name} {frequency}")), default=0)
        return rasp.Map(round, rasp.numerical(mean.named(f"mean {name} {frequency}"))).named(
            f"level {name} {frequency}"
        )

    def product(one: float, other: float) -> complex:
        found = complex(one, other) ** 2 / levels**2
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


def parts_for(prime: int, frequencies: list[int], role: str) -> list[Any]:
    """The parts of some frequencies that have a role."""
    levels = LEVELS if role in ("product", "phase") else FINE
    found = []
    for one in frequencies:
        model = waves(prime, one, levels, unit=role != "product")
        every = graft.parts_of(model, f"{role} {one}")
        heads = [part for part in every if part.kind == "head"]
        whole = [part for part in every if part.name.endswith(".mlp")]
        found.append(heads[0] if role == "waves" else whole[-1])
    return found


def keys_of(host: Any, prime: int) -> tuple[list[int], float]:
    """The key frequencies of a host, and their share of the power of the embedding."""
    power = powers(host, prime)
    key = np.flatnonzero(power >= KEY * power.max())
    return [int(one) + 1 for one in key], round(float(power[key].sum() / power.sum()), 4)


def loaded(folder: Path, stage: str) -> tuple[Any, Any]:
    """A task and its host, with the id of its first number."""
    task, host = load_host(folder, stage)
    host.first = int(task.model.encode([[0, 0, "="]])[0][1])
    return task, host


def compared(data: Any, own: np.ndarray[Any, Any], put: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Accuracy and loss of two logits on the same pairs, and their differences with intervals."""
    mine, other = (HostScore(*data.score(one)) for one in (own, put))
    recovery = Recovery(data.scored, mine, mine, 0)
    losses = [HostScore(one.losses, one.losses) for one in (mine, other)]
    return {
        "host_accuracy": round(recovery.accuracy(mine), 4),
        "host_loss": float(f"{recovery.loss(mine):.4g}"),
        "accuracy": round(recovery.accuracy(other), 4),
        "loss": float(f"{recovery.loss(other):.4g}"),
        "raises": short(recovery.difference(other, mine)),
        "lowers_loss": short(recovery.difference(losses[0], losses[1])),
    }


def short(interval: Any) -> dict[str, float]:
    """An interval in four digits."""
    return {name: float(f"{one:.4g}") for name, one in interval.to_dict().items()}


def restricted(logits: np.ndarray[Any, Any], terms: np.ndarray[Any, Any], prime: int, key: list[int]) -> Any:
    """Logits [pair, logit] of all pairs: only the constant and the waves of the sum at some frequencies are kept."""
    angles = 2 * np.pi * np.outer(terms.sum(axis=1) % prime, key) / prime
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) * math.sqrt(2)
    return logits.mean(axis=0) + waves @ (waves.T @ logits) / len(logits)


def restrictions(host: Any, data: Any, unseen: Any, prime: int, key: list[int], others: list[int]) -> Any:
    """The rows of the published experiment."""
    with torch.no_grad():
        logits = host(torch.as_tensor(data.ids)).numpy().astype(np.float64)
    terms = np.array([one[:2] for one in data.inputs])
    held = data.rows(unseen, cut=False)
    for name, mine in (("restricted", key), ("other restricted", others)):
        put = logits.copy()
        put[:, -1] = restricted(logits[:, -1], terms, prime, mine)
        yield {"at": "logits", "claim": name, "pairs": len(unseen), **compared(held, logits[unseen], put[unseen])}


def rows_of(folder: Path, stage: str, pairs: int, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of one host for some claims: what each recovers, and by how much it raises accuracy."""
    if not wanted:
        return
    prime = int(folder.name.split("_")[-1].partition("-")[0])
    task, host = loaded(folder, stage)
    training = json.loads((folder / "training.json").read_text())
    data, known = data_of(task), np.array(training["trained_on"])
    rng = np.random.default_rng(0)
    unseen = np.setdiff1d(np.arange(len(data)), known)
    fit, test = (data.rows(np.sort(rng.permutation(one)[:pairs])) for one in (known, unseen))
    key = keys_of(loaded(folder, "final")[1], prime)[0]
    now, share = keys_of(host, prime)
    others = [one for one in rng.permutation(np.arange(1, prime // 2 + 1)).tolist() if one not in key][: len(key)]
    about: dict[str, Any] = {"host": folder.name, "stage": stage, "frequencies": key, "others": sorted(others)}
    about |= {"frequencies_now": now, "power_now": share}
    if {"restricted", "other restricted"} & set(wanted):
        for row in restrictions(host, data, unseen, prime, key, sorted(others)):
            yield {**about, **row}
    for name in [name for name in PLACES if name in wanted]:
        if name == "table":
            parts = [part for part in graft.parts_of(task.model, "table") if part.name.endswith(".mlp")]
        else:
            own = not name.startswith("other ")
            parts = parts_for(prime, key if own else sorted(others), ROLES[name])
        at = PLACES[name]
        yield {**about, "at": at, "claim": name, "pairs": pairs, **measured(host, at, parts, fit, test)}


def measured(host: Any, at: str, parts: list[Any], fit: Any, test: Any) -> dict[str, Any]:
    """One replacement on held-out pairs."""
    grafted = graft.replace(host, at, parts, fit, share=0.9, tokens="scored")
    report = grafted.report(test)
    with torch.no_grad():
        own = host(torch.as_tensor(test.ids)).numpy()
    return {
        **compared(test, own, grafted.logits(test.ids)),
        "cost": round(report.cost, 4),
        "recovered": None if report.recovered is None else short(report.recovered),
        "least_read": round(min(report.reads.values(), default=1.0), 4),
        "counts": report.counts,
        "verdict": report.verdict,
        "controls": {f"{one.kind}: {one.name}": round(one.accuracy, 4) for one in report.controls},
    }


def main() -> None:
    """Add the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/modular.json"))
    parser.add_argument("--only", nargs="+", help="names of hosts")
    parser.add_argument("--table", action="store_true", help="print the rows that the file has")
    parser.add_argument("--stages", nargs="+", default=list(STAGES))
    parser.add_argument("--claims", nargs="+", choices=CLAIMS, default=list(CLAIMS), metavar="CLAIM")
    parser.add_argument("--pairs", type=int, default=2_000, help="pairs to fit with, and pairs to test with")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(row["host"], row["stage"], row["claim"]) for row in rows}
    found = sorted(one for folder in given.folders for one in folder.glob("add_mod_*"))
    for folder, stage in itertools.product(found, given.stages):
        missing = not all((folder / one).exists() for one in (f"{stage}.safetensors", "training.json"))
        if missing or (given.only and folder.name not in given.only):
            continue
        wanted = [one for one in given.claims if (folder.name, stage, one) not in done]
        for row in rows_of(folder, stage, given.pairs, wanted):
            rows.append(row)
            print(line(row), flush=True)
            aside = given.out.with_suffix(".tmp")
            aside.write_text(json.dumps(rows, indent=1) + "\n")
            aside.replace(given.out)
    if given.table:
        print(table(rows))


def line(row: dict[str, Any]) -> str:
    """A row of a table."""
    share, raises = ("-" if row.get(name) is None else interval(row[name]) for name in ("recovered", "raises"))
    cells = (
        row["host"],
        row["stage"],
        row["at"],
        row["claim"],
        f"{row['host_accuracy']:.3f}",
        f"{row['accuracy']:.3f}",
    )
    counts = {True: "yes", False: "no"}.get(row.get("counts", ""), "-")
    losses = f"{row['host_loss']:.3g} → {row['loss']:.3g}"
    return "| " + " | ".join([*cells, raises, losses, share, counts]) + " |"


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each stage and claim; numbers of the hosts, seed by seed."""
    lines = ["| stage | component | claim | host | replaced | raises | counts |", "| --- " * 7 + "|"]
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda one: (STAGES.index(one["stage"]), one["host"])):
        groups.setdefault((row["stage"], row["at"], row["claim"]), []).append(row)
    for (stage, at, claim), mine in groups.items():
        own, put = ("; ".join(f"{row[name]:.3f}" for row in mine) for name in ("host_accuracy", "accuracy"))
        counted = [row["counts"] for row in mine if "counts" in row]
        counts = f"{sum(counted)} of {len(counted)}" if counted else "-"
        raises = "; ".join(interval(row["raises"]) for row in mine)
        lines.append("| " + " | ".join([stage, at.removeprefix("blocks.0."), claim, own, put, raises, counts]) + " |")
    return "\n".join(lines)


def interval(one: dict[str, float]) -> str:
    """A number with its interval, as text."""
    return f"{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"


if __name__ == "__main__":
    main()
