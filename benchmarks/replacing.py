"""Known answers: components of admitted twins replaced by the parts of their teachers, and ranked in a library.

    python benchmarks/replacing.py docs/natural/twins [-o docs/replacing/twins.json] [--only hist sort-0] [--table]
    python benchmarks/replacing.py FOLDER... [--seeds 0] [--refine 100] [--rank-only] [--jobs 16] [--until 1795000000]
    python benchmarks/replacing.py FOLDER... --report -o ROWS       # controls, for rows of --rank-only
    python benchmarks/replacing.py --compare -o docs/replacing/twins_h200.json

A folder holds twins as `twin.save` writes them. Rows that the file already has are kept: a stopped run continues. Maps
are fitted on 3 of 4 inputs and tested on the others. For every head and MLP of the teacher whose mean ablation costs at
least 5 points of accuracy in the twin, a row has

- what the true part recovers in closed form, and, if that is below 99 %, after refining by gradient;
- the ranking of `explain` in a library (the zoo's programs for the twin's tokens, and the teacher's parts), refined if
  no part recovers 99 % in closed form; for each part how its output and the true one tell each other.

With `--jobs` components are examined by several processes, those of large twins first; with `--until` (seconds since
1970) no row is waited for after that moment. With `--shuffle` components are examined in a random order that depends on
the names of twin and component alone: components that a stopped run did not finish come first in the next run, and the
first rows of that order are a random sample. `--report` adds controls to rows that were ranked without them
(`--rank-only`), in the same order.

The first part of a ranking is the true one in one of these senses, each weaker than the one before (`EQUAL`):

- its output is the true part's up to renaming, on all inputs tried. Maps that write have a vector for each value, so
  that names make no difference;
- the same at each position; or at each position of inputs of each length. Maps that write have a vector for each
  position, and what position and length tell need not come from the part;
- equal in the program (`src/tracr/graft/equality.py`): it says nothing that the true part does not say, and values of
  the true part that it does not distinguish can be exchanged in the teacher, and no other component of the teacher
  writes anything else;
- the host tells no difference: with either part it gives the right answer, and, with inputs interchanged, the answer
  that it gives with its own component, at so many tokens that the answers with both are the same at 99 % or more.

--compare adds to the rows how the parts of a ranking that recover 99 %, and the first, compare with the true one in
the teacher's program. It needs no twins: teachers and parts are compiled again, and their entropies must be those of
the row.

--table prints the rows that miss, and the shares.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from replacing_tables import COSTS, WANTED, equality, table

import tracr
from tracr import graft, zoo
from tracr.graft.controls import recovery_of, told_by
from tracr.graft.equality import compared_in_program
from tracr.graft.observed import CodedValues, observe
from tracr.graft.recovery import HostScore
from tracr.graft.replacing import workbench
from tracr.natural.cases import case_of

SHARE = 0.75


def main() -> None:
    """Add the missing rows, or print the table."""
    given = arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    if given.report:
        add_controls(rows, given)
    else:
        add_rows(rows, given)
    left = [row for row in rows if given.compare and "ranking" in row and "in_program" not in row["ranking"][0]]
    for row in sorted(left, key=equality, reverse=True):
        compare(row, row.get("most", given.inputs), only_first=given.first)
        kept(rows, given.out)
    if given.table:
        print(table(rows))


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/twins.json"))
    parser.add_argument("--only", nargs="+", help="names of twins")
    parser.add_argument("--seeds", nargs="+", type=int, help="seeds of twins")
    parser.add_argument("--refine", type=int, default=100)
    parser.add_argument("--inputs", type=int, default=1500)
    parser.add_argument("--rank-only", action="store_true", help="no controls: less than half the time")
    parser.add_argument("--shuffle", action="store_true", help="in random order: a stopped run is a random sample")
    parser.add_argument("--report", action="store_true", help="only add controls to rows that were ranked without")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--until", type=float, default=float("inf"), help="when to stop, in seconds since 1970")
    parser.add_argument("--compare", action="store_true", help="add comparisons in the teachers' programs")
    parser.add_argument("--first", action="store_true", help="compare only the first part of each ranking")
    parser.add_argument("--table", action="store_true")
    return parser.parse_args()


def add_rows(rows: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """Examine the components that have no row."""
    done = {(row["twin"], row["at"]) for row in rows}
    wanted = [one for folder in given.folders for one in components(folder, given) if (one[0].name, one[1]) not in done]
    if given.shuffle:
        wanted = sorted(wanted, key=place_in_order)
    for row in examined(wanted, given, row_of):
        rows.append(row)
        print(json.dumps({name: value for name, value in row.items() if name != "ranking"}), flush=True)
        kept(rows, given.out)


def add_controls(rows: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """Report, with controls, the components that were ranked without, and whose twins are in the folders."""
    places = {place.name: place for folder in given.folders for place in folder.iterdir()}
    wanted = {
        (places[row["twin"]], row["at"]): row
        for row in rows
        if "ranking" in row and "counts" not in row and row["twin"] in places
    }
    for added in examined(sorted(wanted, key=place_in_order), given, controls_of):
        wanted[places[added["twin"]], added["at"]].update(added)
        print(json.dumps(added), flush=True)
        kept(rows, given.out)


def place_in_order(one: tuple[Path, str]) -> str:
    """A random number of a component, from the names alone: other twins in a folder do not change the order."""
    place, at = one
    return hashlib.sha256(f"{place.name} {at}".encode()).hexdigest()


def kept(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the rows, one on a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".tmp")
    aside.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    aside.replace(path)


def compare(row: dict[str, Any], most: int, *, only_first: bool = False) -> None:
    """Add to the first part of a ranking, and to those that recover 99 %, how they compare in the program."""
    name = row["twin"].rpartition("-")[0]
    for number, one in enumerate(row["ranking"]):
        if number and (only_first or (one["recovered"] or 0.0) < WANTED):
            continue
        program, _, at = one["part"].partition(" ")
        found = compared(name, row["at"], None if program == row["twin"] else program, at, most)
        if abs(found["bits"] - one["bits"]) > 1e-4 or row["inputs"] != found["inputs"]:
            raise SystemExit(f"{row['twin']} {row['at']}: {one['part']} is not the part that was ranked")
        one["in_program"] = {key: found[key] for key in ("says_more", "exchanges", "noticed")}
        one["same_at_lengths"] = found["same_at_lengths"]
    print(row["twin"], row["at"], row["ranking"][0]["part"], row["ranking"][0]["in_program"], flush=True)


@cache
def compared(name: str, place: str, program: str | None, at: str, most: int) -> dict[str, Any]:
    """A part of a program (`None`: of the teacher itself) compared with the teacher's at a place."""
    teacher = teacher_of(name)
    options, given = teacher.options, graft.inputs_of(teacher, most)
    inputs, model = graft.data_of_program(teacher, given).inputs, teacher  # those on which the program has an answer
    if program is not None:
        entry = zoo.get(program).made_for(tuple(options.vocab), options.max_seq_len)
        model = entry.load(causal=options.causal)
    (true,), (other,) = observe([graft.Part(teacher, place)], inputs), observe([graft.Part(model, at)], inputs)
    found = compared_in_program(true, other.output, inputs)
    return {
        **vars(found),
        "same_at_lengths": true.output.key_at_lengths == other.output.key_at_lengths,
        "bits": other.output.bits,
        "inputs": len(given),
    }


@cache
def teacher_of(name: str) -> Any:
    """The compiled model of a program at the size of its twins."""
    return case_of(name).load()


def components(folder: Path, given: argparse.Namespace) -> Iterator[tuple[Path, str]]:
    """The heads and MLPs of the teachers of the admitted twins in a folder."""
    for place in sorted(folder.iterdir()):
        if not (place / "twin.json").exists() or (given.only and place.name not in given.only):
            continue
        twin: Any = tracr.load(place)
        if twin.admitted and not (given.seeds and twin.seed not in given.seeds):
            own = graft.parts_of(twin.teacher, place.name)
            yield from ((place, part.name) for part in own if part.kind == "head" or part.name.endswith(".mlp"))


def examined(
    wanted: list[tuple[Path, str]], given: argparse.Namespace, find: Callable[..., dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """What `find` says of components, as it is ready."""
    if given.jobs == 1:
        for place, at in wanted:
            if time.time() < given.until:
                yield find(place, at, given)
        return
    count = Counter(place for place, _ in wanted)
    pool = ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn"), initializer=alone)
    order = wanted if given.shuffle or given.report else sorted(wanted, key=lambda one: -count[one[0]])
    jobs = [pool.submit(find, *one, given) for one in order]
    try:
        for job in as_completed(jobs, None if given.until == float("inf") else max(0.0, given.until - time.time())):
            try:
                yield job.result()
            except Exception as error:  # the other components are examined all the same
                print(f"a component was not examined: {error!r}", flush=True)
    except TimeoutError:
        print(f"{sum(not job.done() for job in jobs)} components were not examined in time", flush=True)
    for process in list(pool._processes.values()):  # a pool has no other way to end work in progress
        process.kill()


def alone() -> None:
    """A process of its own: one thread, no warnings."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def row_of(place: Path, at: str, given: argparse.Namespace) -> dict[str, Any]:
    """The row of one component of a twin."""
    began, twin = time.time(), twin_at(place)
    teacher, options = twin.teacher, twin.teacher.options
    own = graft.parts_of(teacher, place.name)
    part = next(one for one in own if one.name == at)
    inputs = graft.inputs_of(teacher, given.inputs)
    parts = [*own, *library(tuple(options.vocab), options.max_seq_len, options.causal)]
    row: dict[str, Any] = {"twin": place.name, "at": at, "does": part.sentence, "most": given.inputs}
    found = measured(twin.to_torch(), part, parts, inputs, given)
    return {**row, **found, "seconds": round(time.time() - began, 1)}


def controls_of(place: Path, at: str, given: argparse.Namespace) -> dict[str, Any]:
    """What a report with controls adds to the row of a component that was ranked without."""
    began, twin = time.time(), twin_at(place)
    inputs = graft.inputs_of(twin.teacher, given.inputs)
    found = reported(twin.to_torch(), graft.Part(twin.teacher, at), inputs, given.refine)
    row: dict[str, Any] = {"twin": place.name, "at": at}
    row |= {name: value for name, value in found.items() if name not in ("inputs", "cost")}
    return {**row, "report_seconds": round(time.time() - began, 1)}


@cache
def twin_at(place: Path) -> Any:
    """A twin, loaded once in each process."""
    return tracr.load(place)


@cache
def library(vocab: tuple[Any, ...], length: int, causal: bool) -> tuple[Any, ...]:
    """The zoo for these tokens; twins of the same tokens share it."""
    return tuple(graft.library(vocab, length, causal=causal))


def measured(host: Any, part: Any, parts: list[Any], inputs: list[Any], given: argparse.Namespace) -> dict[str, Any]:
    """The row of one component."""
    find = recovered_alone if given.rank_only else reported
    found = find(host, part, inputs, given.refine)
    if found["cost"] < COSTS:
        return found
    ranking = graft.explain(host, part.name, parts, inputs, share=SHARE, refine=given.refine)
    true = observe([part], [*ranking_inputs(host, part, inputs)])[0].output
    rows = [candidate(one, part, true) for one in ranking.rows]
    return {**found, "tried": ranking.tried, "ranking": rows}


def recovered_alone(host: Any, part: Any, inputs: list[Any], refine: int) -> dict[str, Any]:
    """What the true part recovers in the place of its component, without controls."""
    bench = workbench(host, part.name, inputs, share=SHARE, seed=0)
    recovery = recovery_of(bench, 0)
    found: dict[str, Any] = {"inputs": len(inputs), "cost": round(recovery.cost, 4)}
    if recovery.cost < COSTS:
        return found
    (observed,) = bench.observed([part])
    for name, steps in (("closed", 0), ("refined", refine)):
        grafted = bench.graft([observed], observed.output, refine=steps)
        share = recovery.recovered(HostScore(*bench.test.score(grafted.logits(bench.test.ids))))
        assert share is not None
        found[name] = {key: round(value, 4) for key, value in share.to_dict().items()}
        if share.value >= WANTED:
            break
    return found


def reported(host: Any, part: Any, inputs: list[Any], refine: int) -> dict[str, Any]:
    """What the true part recovers in the place of its component."""
    report = graft.replace(host, part.name, part, inputs, share=SHARE).report()
    found: dict[str, Any] = {"inputs": len(inputs), "cost": round(report.cost, 4)}
    if report.cost < COSTS:
        return found
    found |= {"closed": share(report), "counts": report.counts, "verdict": report.verdict, "reads": rounded(report)}
    if found["closed"]["value"] < WANTED:
        again = graft.replace(host, part.name, part, inputs, share=SHARE, refine=refine).report()
        found |= {"refined": share(again), "counts": again.counts, "verdict": again.verdict, "reads": rounded(again)}
    return found


def ranking_inputs(host: Any, part: Any, inputs: list[Any]) -> Any:
    """The inputs in the order in which a ranking has them."""
    return workbench(host, part.name, inputs, share=SHARE, seed=0).inputs


def candidate(one: Any, part: Any, true: Any) -> dict[str, Any]:
    """A row of a ranking, and how its output and the true one tell each other."""
    tested = CodedValues(true.classes[-len(one.computed.classes) :, : one.computed.classes.shape[1]], true.codes)
    numbers = {
        name: round(getattr(one, name), 5)
        for name in ("accuracy", "agreement", "faithful", "swapped", "told", "divergence", "bits")
    }
    return {
        "part": one.part.title,
        "true": part.title in (one.part.title, *one.equal),
        "recovered": None if one.recovered is None else round(one.recovered.value, 4),
        "behind": [round(value, 5) for value in one.behind.to_dict().values()],
        **numbers,
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


if __name__ == "__main__":
    main()
