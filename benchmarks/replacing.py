"""Known answers: components of admitted twins replaced by the parts of their teachers, and ranked in a library.

    python benchmarks/replacing.py docs/natural/twins [-o docs/replacing/twins.json] [--only hist sort-0] [--table]
    python benchmarks/replacing.py FOLDER... [--seeds 0] [--refine 100]

A folder holds twins as `twin.save` writes them. Rows that the file already has are kept: a stopped run continues. Maps
are fitted on 3 of 4 inputs and tested on the others. For every head and MLP of the teacher whose mean ablation costs at
least 5 points of accuracy in the twin, a row has

- what the true part recovers in closed form, and, if that is below 99 %, after refining by gradient;
- the ranking of `explain` in a library (the zoo's programs for the twin's tokens, and the teacher's parts), refined if
  no part recovers 99 % in closed form; for each part how its output and the true one tell each other.

The first part of a ranking is the true one in one of these senses, each weaker than the one before (`EQUAL`):

- its output is the true part's up to renaming, on all inputs tried. Maps that write have a vector for each value, so
  that names make no difference;
- the same at each position; or at each position of inputs of each length. Maps that write have a vector for each
  position, and what position and length tell need not come from the part;
- the host tells no difference: with either part it gives the right answer, and, with inputs interchanged, the answer
  that it gives with its own component, at so many tokens that the answers with both are the same at 99 % or more.

--table prints the rows that miss, and the shares. --told prints a share for another order, from the same rows: of the
parts that `explain` takes for equal, those are kept whose output tells almost as much of what the component writes as
any (within so much of the variance), and then the simplest is taken.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import torch

import tracr
from tracr import graft
from tracr.graft.controls import told_by
from tracr.graft.observed import CodedValues, observe
from tracr.graft.ranking import FAITHFUL, TIE
from tracr.graft.replacing import workbench

COSTS, WANTED, SHARE = 0.05, 0.99, 0.75


def main() -> None:
    """Add the missing rows, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/twins.json"))
    parser.add_argument("--only", nargs="+", help="names of twins")
    parser.add_argument("--seeds", nargs="+", type=int, help="seeds of twins")
    parser.add_argument("--refine", type=int, default=100)
    parser.add_argument("--inputs", type=int, default=1500)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--told", nargs="+", type=float, default=[], help="tolerances of what parts tell")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(row["twin"], row["at"]) for row in rows}
    for folder in given.folders:
        for place in sorted(folder.iterdir()):
            if not (place / "twin.json").exists() or (given.only and place.name not in given.only):
                continue
            twin: Any = tracr.load(place)
            if not twin.admitted or (given.seeds and twin.seed not in given.seeds):
                continue
            for row in rows_of(place.name, twin, given, done):
                rows.append(row)
                print(json.dumps({name: value for name, value in row.items() if name != "ranking"}), flush=True)
                given.out.parent.mkdir(parents=True, exist_ok=True)
                aside = given.out.with_suffix(".tmp")
                aside.write_text(json.dumps(rows, indent=1) + "\n")
                aside.replace(given.out)
    if given.table:
        print(table(rows))
    costly = [row for row in rows if "ranking" in row]
    for tolerance in given.told:
        first = [told_first(row["ranking"], tolerance)[0] for row in costly]
        right = [one for one in first if one["same"] or one["same_at_positions"]]
        print(f"told within {tolerance}: the true part, or equal at each position: {of(right, first)}")


def rows_of(name: str, twin: Any, given: argparse.Namespace, done: set[tuple[str, str]]) -> Any:
    """The rows of a twin's components."""
    teacher, host = twin.teacher, twin.to_torch()
    options = teacher.options
    own = graft.parts_of(teacher, name)
    wanted = [part for part in own if part.kind == "head" or part.name.endswith(".mlp")]
    missing = [part for part in wanted if (name, part.name) not in done]
    if not missing:
        return
    inputs = graft.inputs_of(teacher, given.inputs)
    parts = [*own, *graft.library(options.vocab, options.max_seq_len, causal=options.causal)]
    for part in missing:
        began = time.time()
        row: dict[str, Any] = {"twin": name, "at": part.name, "does": part.sentence}
        yield {**row, **measured(host, part, parts, inputs, given.refine), "seconds": round(time.time() - began, 1)}


def measured(host: Any, part: Any, parts: list[Any], inputs: list[Any], refine: int) -> dict[str, Any]:
    """The row of one component."""
    report = graft.replace(host, part.name, part, inputs, share=SHARE).report()
    found: dict[str, Any] = {"inputs": len(inputs), "cost": round(report.cost, 4)}
    if report.cost < COSTS:
        return found
    found |= {"closed": share(report), "counts": report.counts, "verdict": report.verdict, "reads": rounded(report)}
    if found["closed"]["value"] < WANTED:
        again = graft.replace(host, part.name, part, inputs, share=SHARE, refine=refine).report()
        found |= {"refined": share(again), "counts": again.counts, "verdict": again.verdict, "reads": rounded(again)}
    ranking = graft.explain(host, part.name, parts, inputs, share=SHARE, refine=refine)
    true = observe([part], [*ranking_inputs(host, part, inputs)])[0].output
    rows = [candidate(one, part, true) for one in ranking.rows]
    return {**found, "tried": ranking.tried, "ranking": rows}


def ranking_inputs(host: Any, part: Any, inputs: list[Any]) -> Any:
    """The inputs in the order in which a ranking has them."""
    return workbench(host, part.name, inputs, share=SHARE, seed=0).inputs


def candidate(one: Any, part: Any, true: Any) -> dict[str, Any]:
    """A row of a ranking, and how its output and the true one tell each other."""
    tested = CodedValues(true.classes[-len(one.computed.classes) :, : one.computed.classes.shape[1]], true.codes)
    numbers = {
        name: round(getattr(one, name), 5) for name in ("accuracy", "faithful", "swapped", "told", "divergence", "bits")
    }
    return {
        "part": one.part.title,
        "true": part.title in (one.part.title, *one.equal),
        "recovered": None if one.recovered is None else round(one.recovered.value, 4),
        "behind": [round(value, 5) for value in one.behind.to_dict().values()],
        **numbers,
        "swapped_low": round(one.swapped_behind.low, 5),
        "least_read": round(min(one.reads.values(), default=1.0), 4),
        "same": one.output.key == true.key,
        "same_at_positions": one.output.key_at_positions == true.key_at_positions,
        "same_at_lengths": one.output.key_at_lengths == true.key_at_lengths,
        "told_by_true": round(told_by(true, one.output), 4),
        "tells_true": round(told_by(one.output, true), 4),
        "computes_true": round(min(told_by(one.computed, tested), told_by(tested, one.computed)), 4),
    }


def share(report: Any) -> dict[str, float]:
    """The recovered share with its interval."""
    return {name: round(value, 4) for name, value in report.recovered.to_dict().items()}


def rounded(report: Any) -> dict[str, float]:
    """How often each variable was read right."""
    return {label: round(right, 4) for label, right in report.reads.items()}


def recovered(row: dict[str, Any]) -> float:
    """The share that the true part recovers, refined if need be."""
    return float(row.get("refined", row["closed"])["value"])


EQUAL = ("the same", "at each position", "at each position and length", "the host tells no difference")


def equality(row: dict[str, Any]) -> int:
    """The number of the sense in which the first part is the true one; `len(EQUAL)` if in none."""
    first, true = row["ranking"][0], next((one for one in row["ranking"] if one["true"]), None)
    for number, name in enumerate(("same", "same_at_positions", "same_at_lengths")):
        if first.get(name):
            return number
    agree = (first[name] + true[name] - 1 if true else 0.0 for name in ("accuracy", "swapped"))
    return 3 if min(agree) >= WANTED else len(EQUAL)


def told_first(ranking: list[dict[str, Any]], tolerance: float) -> list[dict[str, Any]]:
    """The parts that the first has no advantage over, by what they tell and then by entropy; then the others."""
    tied = [one for one in ranking if ranking_accuracy(ranking) - one["accuracy"] <= TIE]
    faithful = max(one["faithful"] for one in tied) - FAITHFUL
    best = max(one.get("swapped", 1.0) for one in tied)
    kept = [one for one in tied if one["faithful"] >= faithful]
    kept = [one for one in kept if min(best - one.get("swapped", 1.0) - TIE, one.get("swapped_low", 0.0)) <= 0] or kept
    told = max(one["told"] for one in kept) - tolerance
    first = sorted((one for one in kept if one["told"] >= told), key=lambda one: (one["bits"], -one["told"]))
    return [*first, *(one for one in ranking if one not in first)]


def ranking_accuracy(ranking: list[dict[str, Any]]) -> float:
    """The best accuracy in a ranking."""
    return float(max(one["accuracy"] for one in ranking))


def table(rows: list[dict[str, Any]]) -> str:
    """The shares, and every row whose first part is not the true one at each position."""
    costly = [row for row in rows if row["cost"] >= COSTS and "ranking" in row]
    right = [row for row in costly if recovered(row) >= WANTED]
    twins = len({row["twin"] for row in rows})
    closed = sum(row["closed"]["value"] >= WANTED for row in costly)
    lines = [
        f"{len(costly)} of {len(rows)} components of {twins} twins cost at least 5 points.",
        f"The true part recovers at least 99 % of {of(right, costly)}: {closed} in closed form, the others refined.",
        "`explain` puts first",
    ]
    for number, name in enumerate(EQUAL):
        lines.append(f"- the true part, or {name}: {of([row for row in costly if equality(row) <= number], costly)}")
    lines += [
        f"The replacement beats every control for {of([row for row in costly if row['counts']], costly)}.",
        "",
        "| twin | component | first in the ranking | recovers | true part: recovers, place | equal |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *(line(row) for row in costly if equality(row) > 1)])


def of(some: list[Any], every: list[Any]) -> str:
    """How many of how many."""
    return f"{len(some)} of {len(every)} ({len(some) / max(1, len(every)):.1%})"


def line(row: dict[str, Any]) -> str:
    """A row of the table of misses."""
    first, level = row["ranking"][0], equality(row)
    place = next((str(number) for number, one in enumerate(row["ranking"], 1) if one["true"]), "not among them")
    if first["told_by_true"] == 1.0:
        kind = "a function of the true output"
    else:
        kind = "tells the true output" if first["tells_true"] == 1.0 else "another function"
    same = EQUAL[level] if level < len(EQUAL) else "no"
    return (
        f"| {row['twin']} | {row['at']} | {first['part']}: {kind} | {first['recovered']:.3f} "
        f"| {recovered(row):.3f}, {place} | {same} |"
    )


if __name__ == "__main__":
    main()
