"""Draws candidates: random programs as records and, if a dataset of models is made, what became of them."""

from __future__ import annotations

import contextlib
import functools
import gc
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import TracedGraph, trace
from tracr.compiler.pipeline import compile_inferred
from tracr.datasets.bounds import ModelBounds
from tracr.datasets.controls import Controls
from tracr.datasets.meaning import meaning
from tracr.datasets.outcomes import ProgramOutcome, compiled, outcomes_of
from tracr.datasets.printing import with_lines
from tracr.datasets.records import OVER, Record, Refusal
from tracr.datasets.settings import Settings
from tracr.errors import TracrError, TracrWarning
from tracr.ir.inferred import Inferred
from tracr.model.compiled import CompiledModel
from tracr.rasp.expressions import RASPExpr, SOp
from tracr.rasp.size import size_of
from tracr.rasp.traversal import topological

__all__ = ["Candidate", "DrawTask", "draw"]

CHUNK = 20  # the most candidates a worker draws at a time
LEVEL = 1  # the level whose tables give the meaning of a program


@dataclass(frozen=True)
class DrawTask:
    """Some candidates to draw: `count` from `start` on; with settings, their models are made too."""

    seed: int
    start: int
    controls: Controls
    bounds: ModelBounds | None = None
    settings: Settings | None = None
    count: int = CHUNK


@dataclass(frozen=True, eq=False)
class Candidate:
    """A drawn program, and what became of it; `None` if that is not known."""

    record: Record
    outcome: ProgramOutcome | None = None


@dataclass(frozen=True, eq=False)
class _Tabulated:
    """A drawn program with its tables."""

    record: Record
    program: SOp
    traced: TracedGraph
    inferred: Inferred


def draw(task: DrawTask) -> list[Candidate]:
    """The candidates of a task. Collecting garbage waits until everything that is not needed any more was freed."""
    with warnings.catch_warnings(), _without_collection():
        warnings.simplefilter("ignore", TracrWarning)
        return _drawn(task)


def _drawn(task: DrawTask) -> list[Candidate]:
    """Each step is done for all candidates before the next one, which uses the processor's caches better."""
    numbers = range(task.start, task.start + task.count)
    drawn = [task.controls.program((task.seed, number)) for number in numbers]
    printed = [with_lines(program) for program in drawn]
    tables = [_inferred(task, placed) for _, placed in printed]
    tabulated = [
        _tabulated(task, number, *text, found) for number, text, found in zip(numbers, printed, tables, strict=True)
    ]
    models = [_made(task, one) if isinstance(one, _Tabulated) else None for one in tabulated]
    judged = [_judged(task, one, made) for one, made in zip(tabulated, models, strict=True)]
    if task.settings is None:
        return [Candidate(record) for record, _ in judged]
    found = iter(outcomes_of([(record, made) for record, made in judged if made is not None], task.settings))
    return [Candidate(record, None if made is None else next(found)) for record, made in judged]


def _inferred(task: DrawTask, program: SOp) -> tuple[TracedGraph, Inferred] | TracrError:
    """The graph of a program and its tables, or why there are none."""
    try:
        traced = trace({"output": program})
        return traced, infer(traced, task.controls.options(LEVEL))
    except TracrError as error:
        return error


def _tabulated(
    task: DrawTask, number: int, source: str, program: SOp, tables: tuple[TracedGraph, Inferred] | TracrError
) -> _Tabulated | Record:
    """A program with its tables and its record, which has no number yet; only the record if it is refused."""
    seed = task.seed, number
    record = Record(None, seed, task.controls, source, size_of(program), _kinds(program), None, bounds=task.bounds)
    if isinstance(tables, TracrError):
        return replace(record, refused=Refusal.of(tables))
    traced, inferred = tables
    return _Tabulated(replace(record, meaning=meaning(inferred)), program, traced, inferred)


def _made(task: DrawTask, one: _Tabulated) -> CompiledModel | Exception | None:
    """The model of a program, or why there is none; `None` if it is not needed.

    It is not needed if this process drew a program of the same meaning before: only the first one is kept.
    """
    record = one.record
    assert record.meaning is not None
    first, number = _first(task.seed, task.controls, task.bounds), record.seed[1]
    level = task.bounds.level if task.bounds else task.settings.level if task.settings else None
    if first.get(record.meaning, number) < number:
        return None
    made = None if level is None else _model(one, level)
    if task.bounds is None or made is None or _refused(made, task.bounds) is None:
        first[record.meaning] = number
    return made


def _judged(
    task: DrawTask, one: _Tabulated | Record, made: CompiledModel | Exception | None
) -> tuple[Record, CompiledModel | Exception | None]:
    """The record of a candidate, refused if its model exceeds the bounds; and the model to store, if there is one."""
    if isinstance(one, Record) or made is None:
        return (one if isinstance(one, Record) else one.record), None
    if task.bounds is not None:
        refused = _refused(made, task.bounds)
        if refused is not None:
            return replace(one.record, meaning=None, refused=refused), None
        if task.settings is not None and task.settings.level != task.bounds.level:
            made = _model(one, task.settings.level)
    return one.record, None if task.settings is None else made


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Leave cyclic garbage until the end of a block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _refused(made: CompiledModel | Exception, bounds: ModelBounds) -> Refusal | None:
    """Why a program is drawn again: the compiler refused it, or its model is too large. Bugs are recorded later."""
    if isinstance(made, TracrError):
        return Refusal.of(made)
    excess = bounds.excess(made) if isinstance(made, CompiledModel) else ""
    return Refusal(OVER, excess, "allow larger models, or draw smaller programs") if excess else None


def _model(one: _Tabulated, level: int) -> CompiledModel | Exception:
    """The model of a program, or why there is none; the tables of `LEVEL` are not made again."""
    if level != LEVEL:
        return compiled(one.program, one.record.controls.options(level))
    try:
        return CompiledModel(compile_inferred({"output": one.program}, one.traced, one.inferred))
    except Exception as error:
        return error


@functools.lru_cache(maxsize=4)
def _first(seed: int, controls: Controls, bounds: ModelBounds | None) -> dict[str, int]:
    """The first candidate of each meaning that this process drew."""
    return {}


def _kinds(program: RASPExpr) -> dict[str, int]:
    """How many expressions there are of each kind."""
    counts = Counter(type(expr).__name__ for expr in topological([program]))
    return dict(sorted(counts.items()))
