"""Hosts without known answers: which components of plainly trained transformers do parts explain?

    python benchmarks/plain_training.py FOLDER --device cuda
    python benchmarks/plain_hosts.py FOLDER [-o docs/replacing/plain.json] [--only sort-0] [--table]
    python benchmarks/plain_hosts.py FOLDER --only none --program   # older rows: does the part's program say so too?

A row for every head, for all heads of a layer together and for every MLP; with more than the cost if its mean ablation
costs at least 5 points of accuracy: the ranking of `explain` in the library and the parts of the task's own compiled
model, the report of the first part in closed form, and refined if that recovers less than 99 %. Rows that the file
already has are kept.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from plain_training import PlainHost, data_of, load_host, sample_of

from tracr import graft
from tracr.graft.controls import ablations_of, recovery_of
from tracr.graft.recovery import HostScore, ShareInterval
from tracr.graft.replacing import workbench
from tracr.graft.reporting import as_the_program_says, departure

COSTS, SHARE, REFINED, ENOUGH = 0.05, 0.75, 100, 0.99


def places_of(folder: Path) -> list[str]:
    """The components of a host: all heads of a layer, each head, the MLP."""
    task, host = load_host(folder)
    found = []
    for layer in range(task.layers):
        single = [f"blocks.{layer}.attn.{head}" for head in range(host.cfg.n_heads)]
        found += [f"blocks.{layer}.attn", f"blocks.{layer}.mlp", *single]
    return found


def rows_of(folder: Path, places: list[str], most: int) -> Iterator[dict[str, Any]]:
    """A row for each of some components of a host."""
    if not places:
        return
    task, host = load_host(folder)
    curves = json.loads((folder / "training.json").read_text())["curves"]
    name, _, seed = folder.name.rpartition("-")
    about = {"task": name, "seed": int(seed), "steps": curves[-1][0], "held_out": round(curves[-1][4], 4)}
    options = task.model.options
    own = graft.parts_of(task.model, f"{name} (own)")
    library = graft.library(options.vocab, options.max_seq_len, causal=options.causal)
    data = sample_of(data_of(task), most)
    for at in places:
        yield {**about, "at": at, "inputs": len(data), **explained(host, at, [*own, *library], data)}


def explained(host: PlainHost, at: str, parts: list[Any], data: Any) -> dict[str, Any]:
    """What the best part recovers at a component that matters."""
    bench = workbench(host, at, data, share=SHARE, seed=0)

    def rights(logits: Any) -> float:
        return float(bench.test.score(logits)[0].sum() / bench.test.scored.sum())

    cost = rights(bench.test_record.logits) - rights(ablations_of(bench, np.random.default_rng(0))["mean"])
    found: dict[str, Any] = {"cost": round(cost, 4)}
    if cost < COSTS:
        return found
    ranking = graft.explain(host, at, parts, data, share=SHARE, refine=REFINED)
    best = ranking.best
    found |= {"part": best.part.title, "does": best.part.sentence, "equal": list(best.equal)[:5]}
    found["closed"] = reported(host, at, best.part, data, 0)
    share = found["closed"]["recovered"]
    if share is not None and share["value"] < ENOUGH:
        found["refined"] = reported(host, at, best.part, data, REFINED)
    print(f"  {at}: costs {cost:.3f}; {best.part.title}; {found['closed']['verdict']}", flush=True)
    names = ("accuracy", "agreement", "faithful", "swapped", "told", "bits")
    found["ranking"] = [
        {"part": one.part.title, **{name: round(getattr(one, name), 4) for name in names}} for one in ranking.rows[:5]
    ]
    return found


def reported(host: PlainHost, at: str, part: Any, data: Any, refine: int) -> dict[str, Any]:
    """What a report says of a part at a component."""
    report = graft.replace(host, at, part, data, share=SHARE, refine=refine).report()
    share = report.recovered
    raises = report.line("replaced").accuracy - report.line("host").accuracy
    return {
        "recovered": None if share is None else {name: round(one, 4) for name, one in share.to_dict().items()},
        "counts": report.counts,
        "verdict": report.verdict,
        "host": round(report.line("host").accuracy, 4),
        "raises": round(raises, 4),
        "best_control": round(max(one.accuracy for one in report.controls), 4),
        "reads": {label: round(right, 4) for label, right in report.reads.items()},
        "excess": rounded(report.excess),
    }


def rounded(share: ShareInterval) -> dict[str, float]:
    """A share with its interval."""
    return {name: round(one, 4) for name, one in share.to_dict().items()}


def add_excess(found: dict[str, Any], host: Any, at: str, part: Any, data: Any, refine: int) -> None:
    """Add to a report that beats every control whether the part's program says so; controls are not made again."""
    if not found["counts"] or "excess" in found:
        return
    grafted = graft.replace(host, at, part, data, share=SHARE, refine=refine)
    fitted = grafted.fitted
    assert fitted is not None
    test, recovery = fitted.bench.test, recovery_of(fitted.bench, 0)
    pair = grafted.logits(test.ids), as_the_program_says(grafted, fitted)
    replaced, said = (HostScore(*test.score(one)) for one in pair)
    share = recovery.recovered(replaced)
    if share is None or abs(share.value - found["recovered"]["value"]) > 0.002:
        raise SystemExit(f"{at}: {part.title} recovers {share}, not {found['recovered']['value']}")
    excess = recovery.difference(replaced, said)
    found["excess"] = rounded(excess)
    if reason := departure(excess):
        found |= {"counts": False, "verdict": reason}


def complete(rows: list[dict[str, Any]], folder: Path) -> Iterator[None]:
    """Add what the programs say to rows that were measured without."""
    for row in rows:
        reports = [(row[kind], steps) for kind, steps in (("closed", 0), ("refined", REFINED)) if kind in row]
        if not any(found["counts"] and "excess" not in found for found, _ in reports):
            continue
        task, host = load_host(folder / f"{row['task']}-{row['seed']}")
        options = task.model.options
        if "(own)" in row["part"]:
            parts = graft.parts_of(task.model, f"{row['task']} (own)")
        else:
            name = row["part"].partition(" ")[0]
            parts = graft.library(options.vocab, options.max_seq_len, causal=options.causal, names=[name])
        part = next(one for one in parts if one.title == row["part"])
        for found, steps in reports:
            add_excess(found, host, row["at"], part, sample_of(data_of(task), row["inputs"]), steps)
        print(
            row["task"], row["seed"], row["at"], [(one["counts"], one.get("excess")) for one, _ in reports], flush=True
        )
        yield


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each component of a task; numbers of its hosts, seed by seed, where the component matters."""
    lines = [
        "| host, component | seeds | cost | first part | recovered in closed form | counts | refined | counts |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda one: (one["task"], one["at"], one["seed"])):
        groups.setdefault((row["task"], row["at"]), []).append(row)
    for (task, at), every in groups.items():
        mine = [row for row in every if "closed" in row]
        if not mine:
            continue
        parts = Counter(row["part"] for row in mine)
        named = ", ".join(f"{part} ({count})" if len(parts) > 1 else part for part, count in parts.most_common())
        again = [last(row) for row in mine]
        cells = [
            f"{task}, {at.removeprefix('blocks.')}",
            f"{len(mine)} of {len(every)}",
            "; ".join(f"{row['cost']:.2f}" for row in mine),
            named,
            *(text for kind in ([row["closed"] for row in mine], again) for text in (shares(kind), counting(kind))),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


KINDS = {"all heads of a layer": "attn", "single heads": "0123", "MLPs": "mlp"}  # the ends of their places


def summary(rows: list[dict[str, Any]]) -> str:
    """How many components of each kind were examined, matter, and have a part that counts."""
    lines = [
        "| components | examined | cost 5 points | count in closed form | count in the end |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, end in KINDS.items():
        every = [row for row in rows if row["at"].rpartition(".")[2] in ([*end] if end.isdigit() else [end])]
        mine = [row for row in every if "closed" in row]
        cells = [name, str(len(every)), str(len(mine))]
        cells += [counting([row["closed"] for row in mine]), counting([last(row) for row in mine])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sentences(rows: list[dict[str, Any]]) -> list[str]:
    """Numbers in the text of the page."""
    mine = [row for row in rows if "closed" in row]
    sort = [last(row) for row in mine if row["task"] == "sort"]
    close = [one for one in sort if not one["counts"] and one["recovered"]["value"] >= 0.95]
    raises = max(last(row)["raises"] for row in mine)
    widths = [one["recovered"]["high"] - one["recovered"]["low"] for row in mine for one in (row["closed"], last(row))]
    return [
        f"In `sort` nothing counts in the end ({counting(sort)} components)",
        f"{len(close)} of these {len(sort)} parts recover 95 % or more",
        f"more accurate than its host by more than {math.ceil(1000 * raises) / 1000:.3f}",
        f"the widest is {max(widths):.2f} wide, half of them are below {sorted(widths)[len(widths) // 2]:.2f}",
    ]


def last(row: dict[str, Any]) -> dict[str, Any]:
    """The report of a row that was refined if need be."""
    found: dict[str, Any] = row.get("refined", row["closed"])
    return found


def shares(reports: list[dict[str, Any]]) -> str:
    """The recovered shares."""
    return "; ".join("-" if one["recovered"] is None else f"{one['recovered']['value']:.2f}" for one in reports)


def counting(reports: list[dict[str, Any]]) -> str:
    """How many replacements count."""
    return f"{sum(one['counts'] for one in reports)} of {len(reports)}"


def kept(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(rows, indent=1) + "\n")
    aside.replace(path)


def main() -> None:
    """Explain the hosts that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/plain.json"))
    parser.add_argument("--only", nargs="+", help="names of hosts")
    parser.add_argument("--inputs", type=int, default=1_500)
    parser.add_argument("--table", action="store_true", help="print the rows that the file has")
    parser.add_argument("--at", nargs="+", help="components; by default all")
    parser.add_argument("--program", action="store_true", help="complete older rows that beat every control")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(row["task"], row["seed"], row["at"]) for row in rows}
    for folder in sorted(given.folder.iterdir()) if given.folder else ():
        name, _, seed = folder.name.rpartition("-")
        if (given.only and folder.name not in given.only) or name.startswith("add_mod"):
            continue
        places = [at for at in given.at or places_of(folder) if (name, int(seed), at) not in done]
        for row in rows_of(folder, places, given.inputs):
            rows.append(row)
            kept(rows, given.out)
    for _ in complete(rows, given.folder) if given.program else ():
        kept(rows, given.out)
    if given.table:
        print(table(rows))


if __name__ == "__main__":
    main()
