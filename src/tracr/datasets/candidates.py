"""Draws candidates: random programs as records and, if a dataset of models is made, what became of them."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from dataclasses import dataclass, replace

from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import TracedGraph, trace
from tracr.compiler.pipeline import compile_inferred
from tracr.datasets.bounds import Bounds
from tracr.datasets.controls import Controls
from tracr.datasets.meaning import meaning
from tracr.datasets.outcomes import Outcome, compiled, outcome_of
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

CHUNK = 20  # candidates a worker draws at a time
LEVEL = 1  # the level whose tables give the meaning of a program


@dataclass(frozen=True)
class DrawTask:
    """Some candidates to draw: `CHUNK` from `start` on; with settings, their models are made too."""

    seed: int
    start: int
    controls: Controls
    bounds: Bounds | None = None
    settings: Settings | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """A drawn program, and what became of it; `None` if that is not known."""

    record: Record
    outcome: Outcome | None = None


def draw(task: DrawTask) -> list[Candidate]:
    """The candidates of a task."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracrWarning)
        return [_candidate(task, number) for number in range(task.start, task.start + CHUNK)]


def _candidate(task: DrawTask, number: int) -> Candidate:
    """The program of a seed as a record without a number.

    Its model is made only if it is needed: not if this process drew a program of the same meaning before.
    """
    controls, program = task.controls, task.controls.program((task.seed, number))
    source, placed = with_lines(program)
    record = Record(
        None, (task.seed, number), controls, source, size_of(program), _kinds(program), None, bounds=task.bounds
    )
    try:
        traced = trace({"output": placed})
        inferred = infer(traced, controls.options(LEVEL))
        record = replace(record, meaning=meaning(inferred))
    except TracrError as error:
        return Candidate(replace(record, refused=Refusal.of(error)))
    assert record.meaning is not None
    first = _first(task.seed, controls, task.bounds)
    if first.get(record.meaning, number) < number:
        return Candidate(record)
    made: CompiledModel | Exception | None = None
    if task.bounds is not None:
        made = _model(placed, traced, inferred, task.bounds.level)
        refused = _refused(made, task.bounds)
        if refused is not None:
            return Candidate(replace(record, meaning=None, refused=refused))
    first[record.meaning] = number
    if task.settings is None:
        return Candidate(record)
    if made is None or (task.bounds is not None and task.bounds.level != task.settings.level):
        made = _model(placed, traced, inferred, task.settings.level)
    return Candidate(record, outcome_of(record, made, task.settings))


def _refused(made: CompiledModel | Exception, bounds: Bounds) -> Refusal | None:
    """Why a program is drawn again: the compiler refused it, or its model is too large. Bugs are recorded later."""
    if isinstance(made, TracrError):
        return Refusal.of(made)
    excess = bounds.excess(made) if isinstance(made, CompiledModel) else ""
    return Refusal(OVER, excess, "allow larger models, or draw smaller programs") if excess else None


def _model(placed: SOp, traced: TracedGraph, inferred: Inferred, level: int) -> CompiledModel | Exception:
    """The model of a program, or why there is none; the tables of `LEVEL` are not made again."""
    if level != LEVEL:
        return compiled(placed, replace(inferred.options, level=level))
    try:
        return CompiledModel(compile_inferred({"output": placed}, traced, inferred))
    except Exception as error:
        return error


@functools.lru_cache(maxsize=4)
def _first(seed: int, controls: Controls, bounds: Bounds | None) -> dict[str, int]:
    """The first candidate of each meaning that this process drew."""
    return {}


def _kinds(program: RASPExpr) -> dict[str, int]:
    """How many expressions there are of each kind."""
    counts = Counter(type(expr).__name__ for expr in topological([program]))
    return dict(sorted(counts.items()))
