"""Parts of one's own programs, which are not in the zoo, in the place of heads of plainly trained hosts.

    python benchmarks/own_programs.py docs/replacing/hosts [-o docs/replacing/own.json] [--only sort-0] [--table]

A guess about the heads of layer 0 of each task is written down as a program below, with a wrong one of the same
kind. Both are compiled, and each takes the place of all heads of the layer, in closed form and refined; the other one
is among its controls. Nothing of the library is used. Rows that the file already has are kept.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import plain_hosts
import torch
from plain_training import data_of, load_host, sample_of

import tracr
from tracr import graft
from tracr.rasp import rasp

SHARE, REFINED, ENOUGH = 0.75, 100, 0.99


class Guess(NamedTuple):
    """What heads of a host are guessed to do: their place, and the programs whose heads do it, or something else."""

    at: str
    right: Any
    wrong: Any


def member_of(group: tuple[Any, ...]) -> Any:
    """Whether a token is in a group, as a number."""
    return rasp.numerical(rasp.Map(lambda token: float(token in group), rasp.tokens))


def shares(groups: list[tuple[Any, ...]]) -> Any:
    """The share of the positions whose token is in a group, for each group, weighed so that none can be left out."""
    every = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.TRUE)
    found: list[Any] = []
    for number, group in enumerate(groups):
        member = member_of(group).named(f"in{number}")
        found.append(rasp.numerical(rasp.Aggregate(every, member)).named(f"share{number}"))
    return reduce(lambda one, other: rasp.LinearSequenceMap(one, other, 1.0, 3.0), found).named("answer")


def balance(weights: dict[str, float]) -> Any:
    """The mean of a number for each token so far."""
    so_far = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    worth = rasp.numerical(rasp.Map(lambda token: weights.get(token, 0.0), rasp.tokens)).named("worth")
    return rasp.numerical(rasp.Aggregate(so_far, worth)).named("answer")


def copied(distance: int) -> Any:
    """The token so many positions before this one."""
    there = rasp.Map(lambda index: index - distance, rasp.indices).named("there")
    return rasp.Aggregate(rasp.Select(rasp.indices, there, rasp.Comparison.EQ), rasp.tokens, default="-").named(
        "answer"
    )


def squared(comparison: Any) -> Any:
    """The square of the number of positions whose token compares so with this one's."""
    width = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, comparison)).named("width")
    return rasp.Map(lambda count: count * count, width).named("answer")


GUESSES: dict[str, Guess] = {
    "sort": Guess("blocks.0.attn", shares([(0,), (1,), (2,)]), shares([(0, 2)])),
    "hist": Guess("blocks.0.attn", squared(rasp.Comparison.EQ), squared(rasp.Comparison.LT)),
    "induction_head": Guess("blocks.0.attn", copied(1), copied(2)),
    "depth": Guess("blocks.0.attn", balance({"(": 1.0, ")": -1.0}), balance({"(": 1.0, "a": -1.0})),
    "dyck1": Guess("blocks.0.attn", balance({"(": 1.0, ")": -1.0}), balance({"(": 1.0, "a": -1.0})),
}


def head_of(program: Any, options: Any, name: str) -> Any:
    """The only head of a program."""
    model = tracr.compile(program, options.vocab, options.max_seq_len, causal=options.causal)
    (found,) = [one for one in graft.parts_of(model, name) if one.kind == "head"]
    return found


def rows_of(folder: Path, most: int, steps: int) -> list[dict[str, Any]]:
    """The rows of the right and of the wrong part in a host."""
    task, host = load_host(folder)
    name, _, seed = folder.name.rpartition("-")
    guess, data = GUESSES[name], sample_of(data_of(task), most)
    parts = {kind: head_of(getattr(guess, kind), task.model.options, kind) for kind in ("right", "wrong")}
    rows = []
    for kind, part in parts.items():
        about = {"task": name, "seed": int(seed), "at": guess.at, "inputs": len(data)}
        row: dict[str, Any] = {**about, "guess": kind, "does": part.sentence}
        others = [other for other in parts.values() if other is not part]
        row["closed"] = reported(host, guess.at, part, others, data, 0)
        share = row["closed"]["recovered"]
        if steps and share is not None and share["value"] < ENOUGH:
            row["refined"] = reported(host, guess.at, part, others, data, steps)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def reported(host: Any, at: str, part: Any, others: list[Any], data: Any, refine: int) -> dict[str, Any]:
    """What a report says of a part."""
    report = graft.replace(host, at, part, data, share=SHARE, refine=refine).report(others=others)
    share = report.recovered
    return {
        "cost": round(report.cost, 4),
        "recovered": None if share is None else {name: round(one, 4) for name, one in share.to_dict().items()},
        "counts": report.counts,
        "verdict": report.verdict,
        "controls": {f"{one.kind}: {one.name}": round(one.accuracy, 4) for one in report.controls},
        "replaced": round(report.line("replaced").accuracy, 4),
        "reads": {label: round(right, 4) for label, right in report.reads.items()},
        "excess": plain_hosts.rounded(report.excess),
    }


def complete(rows: list[dict[str, Any]], folder: Path) -> None:
    """Add what the programs say to rows that were measured without."""
    for row in rows:
        task, host = load_host(folder / f"{row['task']}-{row['seed']}")
        part = head_of(getattr(GUESSES[row["task"]], row["guess"]), task.model.options, row["guess"])
        data = sample_of(data_of(task), row["inputs"])
        for kind, steps in (("closed", 0), ("refined", REFINED)):
            if kind in row:
                plain_hosts.add_excess(row[kind], host, row["at"], part, data, steps)


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each task and guess; numbers seed by seed."""
    lines = [
        "| host, component | guess | seeds | recovered in closed form | counts | refined | counts |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda one: (one["task"], one["at"], one["guess"], one["seed"])):
        groups.setdefault((row["task"], row["at"], row["guess"]), []).append(row)
    for (task, at, guess), mine in groups.items():
        again = [plain_hosts.last(row) for row in mine]
        cells = [f"{task}, {at.removeprefix('blocks.')}", guess, ", ".join(str(row["seed"]) for row in mine)]
        for reports in ([row["closed"] for row in mine], again):
            cells += [plain_hosts.shares(reports), plain_hosts.counting(reports)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sentences(rows: list[dict[str, Any]]) -> list[str]:
    """Numbers in the text of the page: shares with intervals, and accuracies beside those of controls."""

    def of(task: str, guess: str, show: Callable[[dict[str, Any]], str], *, refined: bool) -> str:
        mine = sorted(
            (one for one in rows if (one["task"], one["guess"]) == (task, guess)), key=lambda one: one["seed"]
        )
        found = [show(plain_hosts.last(row) if refined else row["closed"]) for row in mine]
        return f"{', '.join(found[:-1])} and {found[-1]}"

    def share(one: dict[str, Any]) -> str:
        return "{value:.2f} [{low:.2f}, {high:.2f}]".format(**one["recovered"])

    def beside(one: dict[str, Any]) -> str:
        linear = max(value for name, value in one["controls"].items() if name.startswith("linear"))
        return f"{one['replaced']:.3f} against {linear:.3f}"

    return [
        *(of(task, "right", share, refined=True) for task in ("hist", "induction_head")),
        *(of("depth", "right", beside, refined=end) for end in (False, True)),
        *(of("dyck1", guess, share, refined=end) for guess in ("right", "wrong") for end in (False, True)),
        *(of("sort", "right", share, refined=end) for end in (False, True)),
        *(of("sort", "right", beside, refined=end) for end in (False, True)),
    ]


def main() -> None:
    """Add the missing rows, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/own.json"))
    parser.add_argument("--only", nargs="+", help="names of hosts")
    parser.add_argument("--inputs", type=int, default=1_500)
    parser.add_argument("--refine", type=int, default=REFINED)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--program", action="store_true", help="complete older rows that beat every control")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {f"{row['task']}-{row['seed']}" for row in rows}
    for folder in sorted(given.folder.iterdir()) if given.folder else ():
        known = folder.name.rpartition("-")[0] in GUESSES
        if not known or folder.name in done or (given.only and folder.name not in given.only):
            continue
        rows += rows_of(folder, given.inputs, given.refine)
        plain_hosts.kept(rows, given.out)
    if given.program:
        complete(rows, given.folder)
        plain_hosts.kept(rows, given.out)
    if given.table:
        print(table(rows))


if __name__ == "__main__":
    main()
