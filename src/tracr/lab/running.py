"""Runs methods on subjects and writes a table of scores; a stopped run continues where it was."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

from tracr.arguments import one_of, whole
from tracr.compress.store import Store
from tracr.errors import TracrError
from tracr.ground_truth.ablations import Ablation
from tracr.lab.choices import Configured, read_configured
from tracr.lab.dials import dial_realisations
from tracr.lab.finding import find_method, method_for
from tracr.lab.methods.passes import GRANULARITIES
from tracr.lab.one_case import Case
from tracr.lab.realising import realisation_of
from tracr.lab.rows import KEY, Conditions, SubjectRuns, key_columns, run_subject
from tracr.lab.selecting import named_case, select_cases
from tracr.lab.subject_cache import VARIABLE, weights_digest
from tracr.lab.track import TRACKS
from tracr.lab.twin_folder import TwinFolder
from tracr.workers import SERIAL, Workers

__all__ = ["LabRun", "drawn_cases", "run"]

DEFAULT = Conditions()


@dataclass(frozen=True)
class LabRun:
    """The result of a run: rows made now, rows found, rows failed in all; `results` is the table."""

    made: int
    found: int
    failed: int
    results: Path


def run(
    methods: Iterable[str | Configured],
    cases: Iterable[str | Case],
    realisations: Iterable[str | Configured] = ("compiled",),
    seeds: Iterable[int] = (0,),
    *,
    dials: Iterable[str] = (),
    folder: str | Path,
    conditions: Conditions = DEFAULT,
    cache: str | Path | None = None,
    twins: str | Path | None = None,
    subset: Mapping[str, int] | None = None,
    workers: Workers = SERIAL,
    retry: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> LabRun:
    """Run every method on every realisation of every case with every seed, and write a row for each into `folder`.

    A run that was stopped can be called again: it repeats only unfinished subjects. A failure is a row with its error.

    Args:
        methods: names of methods, or `FILE.py:FUNCTION`, with settings: `eap_ig_inputs:steps=20`.
        cases: cases, or words that `select_cases` reads: names, tags, `core`, `all`, `private:SEED:COUNT`.
        realisations: names of realisations, with dials: `superposed:ratio=1.5`.
        seeds: a seed draws the realisation, the pairs, and the random numbers of a method that has a setting `seed`.
        dials: names of dials (`tracr.lab.DIALS`); each adds the realisations that it stands for.
        folder: the folder of the results; a run with other conditions is refused.
        conditions: the pairs and the truth.
        cache: the folder that subjects are kept in. By default that in TRACR_CACHE, else `folder`/subjects.
        twins: a folder of trained twins, which are used and never trained; by default that in TRACR_TWINS.
        subset: for a method, on how many of the cases it runs: `{"acdc": 20}`. The cases are drawn with the seed 0.
        workers: `tracr.workers.over_processes(jobs)` or `over_ray()`.
        retry: repeat failed rows.
        progress: called with rows done, rows in all and rows failed now, at the start and after every subject.
    """
    _check(conditions)
    chosen = [_found_anywhere(read_configured(one), conditions.track) for one in methods]
    ways = [*map(read_configured, realisations), *dial_realisations(dials)]
    found_cases = _cases(cases, workers)
    for way in ways:
        realisation_of(way.name).check_dials(way.settings)
    source = TwinFolder.of(twins)
    trained = None if source is None else source.folder.absolute()
    fewer = _drawn(subset or {}, [one.name for _, one in found_cases])
    kept = Path(os.environ.get(VARIABLE) or Path(folder) / "subjects") if cache is None else Path(cache)
    models = {one.name: weights_digest(one.model.parameters) for _, one in found_cases}
    store = Store(folder, asdict(conditions), models, TRACKS[conditions.track].columns, KEY)
    tasks = [
        SubjectRuns(
            case,
            way,
            whole("seed", seed),
            tuple(one for one in chosen if named.name in fewer.get(find_method(one).name, {named.name})),
            conditions,
            kept.absolute(),
            trained,
        )
        for (case, named), way, seed in product(found_cases, ways, list(seeds))
    ]
    return _run(store, tasks, workers, retry, progress)


def _drawn(subset: Mapping[str, int], names: Sequence[str]) -> dict[str, set[str]]:
    """The cases of the methods that do not run on all."""
    return {
        find_method(read_configured(name)).name: drawn_cases(names, whole("subset", count, 1))
        for name, count in subset.items()
    }


def drawn_cases(names: Iterable[str], count: int) -> set[str]:
    """A random part of the cases: those whose names have the smallest digests. More cases add to it, or replace some.

    >>> sorted(drawn_cases(["hist", "sort", "reverse", "dyck1"], 2))
    ['hist', 'sort']
    """
    return {*sorted(names, key=lambda name: hashlib.sha256(f"0 {name}".encode()).digest())[:count]}


def _found_anywhere(choice: Configured, track: str) -> Configured:
    """A method of the track that exists; a file with its whole path, because workers may have another folder."""
    method_for(choice, track)
    file, colon, name = choice.name.rpartition(":")
    return Configured(f"{Path(file).absolute()}:{name}", choice.settings) if colon else choice


def _check(conditions: Conditions) -> None:
    one_of("track", conditions.track, TRACKS)
    whole("pairs", conditions.pairs, 1)
    one_of("ablation", conditions.ablation, get_args(Ablation))
    one_of("granularity", conditions.granularity, GRANULARITIES)


def _cases(given: Iterable[str | Case], workers: Workers) -> list[tuple[str | Case, Case]]:
    """The cases, each with its name if that is enough to find it again."""
    found: dict[str, tuple[str | Case, Case]] = {}
    for one in given:
        for case in select_cases([one]) if isinstance(one, str) else [one]:
            found[case.name] = (case.name if _is_named(case) else case, case)
    if not found:
        raise TracrError("no case is given", hint='pass cases=["hist"], for example')
    own = [name for name, (case, _) in found.items() if not isinstance(case, str)]
    if own and workers is not SERIAL:
        raise TracrError(f"the case {own[0]} cannot be sent to another process", hint="run it without workers")
    return list(found.values())


def _is_named(case: Case) -> bool:
    try:
        return named_case(case.name) is case
    except TracrError:
        return False


def _run(
    store: Store,
    tasks: Sequence[SubjectRuns],
    workers: Workers,
    retry: bool,
    progress: Callable[[int, int, int], None] | None,
) -> LabRun:
    wanted = {_key(task, choice) for task in tasks for choice in task.methods}
    if not wanted:
        raise TracrError("there is nothing to run", hint="give methods, cases, realisations and seeds")
    there = store.done(retry=wanted if retry else ()) & wanted
    taken = set(there)
    missing = [_without(task, taken) for task in tasks]
    total, found, made, failed = len(wanted), len(there), 0, 0
    if progress is not None:
        progress(found, total, failed)
    for rows in _results(workers, [task for task in missing if task.methods]):
        store.add(rows)
        made += len(rows)
        failed += sum(row["status"] != "done" for row in rows)
        if progress is not None:
            progress(found + made, total, failed)
    failed = sum(row["status"] != "done" for row in store.rows())
    return LabRun(made, found, failed, store.finish())


def _results(workers: Workers, tasks: Sequence[SubjectRuns]) -> Iterator[list[dict[str, Any]]]:
    try:
        yield from workers.map(run_subject, tasks)
    except BrokenExecutor:
        raise TracrError(
            "a worker process was killed, perhaps because the memory was full",
            hint="run it again with fewer --jobs: finished rows are kept",
        ) from None


def _key(task: SubjectRuns, choice: Configured) -> tuple[Any, ...]:
    row = key_columns(task, choice)
    return tuple(row[name] for name in KEY)


def _without(task: SubjectRuns, taken: set[tuple[Any, ...]]) -> SubjectRuns:
    """The task without methods whose row is taken; the others are now."""
    remaining = []
    for choice in task.methods:
        key = _key(task, choice)
        if key not in taken:
            taken.add(key)
            remaining.append(choice)
    return replace(task, methods=tuple(remaining))
