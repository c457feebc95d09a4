"""Twins of many programs, in folders: a stopped run continues where it was.

FOLDER/seed0, FOLDER/seed1, ...    the twins of a program
FOLDER/training-0_3                the state of training of seeds 0 to 3, until their twins are saved
"""

from __future__ import annotations

import inspect
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from tracr.errors import TracrError
from tracr.natural.architecture import architecture_of
from tracr.natural.distilling import Progress, twins
from tracr.natural.saving import is_twin, load
from tracr.natural.twin_model import TwinModel
from tracr.workers import SERIAL, Workers

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["ProgramTwins", "TwinTask", "train_many"]

TRAINING = "training-"
DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(twins).parameters.items()}


@dataclass(frozen=True)
class TwinTask:
    """The twins of one program: its name and model, the seeds, the folder, and settings of `twins`."""

    name: str
    model: CompiledModel
    seeds: tuple[int, ...]
    folder: Path
    settings: Mapping[str, Any]

    @property
    def checkpoint(self) -> Path:
        """The folder of the state of training of these seeds."""
        return self.folder / f"{TRAINING}{_ranges(self.seeds)}"

    @property
    def begun(self) -> dict[Path, tuple[int, ...]]:
        """The folders with a state of training of some of the seeds, and which."""
        found = {path: _numbers(path.name.removeprefix(TRAINING)) for path in self.folder.glob(f"{TRAINING}*")}
        return {path: seeds for path, seeds in found.items() if seeds and set(seeds) <= set(self.seeds)}

    def place(self, seed: int) -> Path:
        """The folder of a twin."""
        return self.folder / f"seed{seed}"

    def found(self) -> dict[int, TwinModel]:
        """The twins in the folder that are finished: admitted, or trained for all steps."""
        given = {**DEFAULTS, **self.settings}
        sizes = [given[name] for name in ("width", "d_head", "d_mlp")]
        functions = {name: given[name] for name in ("layer_norm", "activation")}
        architecture = architecture_of(self.model, *sizes, **functions)
        there = {seed: load(self.place(seed)) for seed in self.seeds if is_twin(self.place(seed))}
        for seed, twin in there.items():
            if (twin.architecture, twin.seed) != (architecture, seed) or not _same(twin.teacher, self.model):
                raise TracrError(
                    f"{self.place(seed)} holds a twin with other settings or of another program",
                    hint="name another folder, or delete it",
                )
        return {seed: twin for seed, twin in there.items() if twin.admitted or twin.steps >= given["steps"]}

    def remaining(self) -> TwinTask:
        """The task for the seeds that are not finished, with those that are in training together with them."""
        missing = set(self.seeds) - set(self.found())
        together = [seeds for seeds in self.begun.values() if missing <= set(seeds)]
        return replace(self, seeds=min(together, key=len, default=tuple(sorted(missing))))


def _ranges(seeds: Iterable[int]) -> str:
    """Numbers as text that can be a file name.

    >>> _ranges([0, 1, 2, 3, 7]), _numbers("0_3+7"), _numbers("x")
    ('0_3+7', (0, 1, 2, 3, 7), ())
    """
    pieces: list[list[int]] = []
    for seed in sorted(seeds):
        if pieces and seed == pieces[-1][-1] + 1:
            pieces[-1].append(seed)
        else:
            pieces.append([seed])
    return "+".join(f"{piece[0]}_{piece[-1]}" if len(piece) > 1 else str(piece[0]) for piece in pieces)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers that `_ranges` wrote; none if it did not write the text."""
    found: list[int] = []
    for piece in text.split("+"):
        first, _, last = piece.partition("_")
        if not first.isdecimal() or not (last or first).isdecimal():
            return ()
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


@dataclass(frozen=True)
class ProgramTwins:
    """The twins of one program, or the reason why there are none; `seconds` is 0 if none was trained now."""

    task: TwinTask
    twins: tuple[TwinModel, ...]
    seconds: float = 0.0
    problem: str = ""

    @property
    def admitted(self) -> int:
        """The number of admitted twins."""
        return sum(twin.admitted for twin in self.twins)


def train_many(
    tasks: Iterable[TwinTask],
    *,
    workers: Workers = SERIAL,
    progress: Callable[[TwinTask, Progress], None] | None = None,
) -> Iterator[ProgramTwins]:
    """Train and save the twins that are not finished yet, one program after the other or over workers.

    Finished programs come first, the others in their order. A program that is refused or fails does not stop the
    others. `progress` is called after every round of training in this process, not for workers. Workers write the
    state of training themselves: on several machines, a stopped program continues only if they share the folder.
    """
    waiting = []
    for task in tasks:
        done = _guarded(_finished, task)
        if done is None:
            waiting.append(task)
        else:
            yield done
    function = partial(_trained, progress=progress) if workers is SERIAL else _trained
    for task, made in zip(waiting, workers.map(function, (task.remaining() for task in waiting)), strict=True):
        yield made if made.problem else _guarded(partial(_saved, made=made), task)


def _guarded(function: Callable[[TwinTask], Any], task: TwinTask) -> Any:
    """The result; a program that is refused or fails is a result too."""
    try:
        return function(task)
    except TracrError as error:
        return ProgramTwins(task, (), problem=f"refused: {error}")
    except Exception as error:
        return ProgramTwins(task, (), problem=f"failed: {type(error).__name__}: {error}".strip())


def _finished(task: TwinTask) -> ProgramTwins | None:
    """The twins of a program, if all are finished; a state of training that a stopped run left is deleted."""
    there = task.found()
    if len(there) < len(task.seeds):
        return None
    for path in task.begun:
        shutil.rmtree(path, ignore_errors=True)
    return ProgramTwins(task, tuple(there.values()))


def _trained(task: TwinTask, progress: Callable[[TwinTask, Progress], None] | None = None) -> ProgramTwins:
    """The twins of the seeds of a task, trained; they are not saved yet."""

    def train(task: TwinTask) -> ProgramTwins:
        began = time.time()
        show = None if progress is None else partial(progress, task)
        made = twins(task.model, task.seeds, checkpoint=task.checkpoint, progress=show, **task.settings)
        return ProgramTwins(task, tuple(made), time.time() - began)

    try:
        return _guarded(train, task)  # type: ignore[no-any-return]
    finally:
        jax.clear_caches()  # the next program shares no compiled function


def _saved(task: TwinTask, made: ProgramTwins) -> ProgramTwins:
    """All twins of a task, after those made now were saved; the state of training is then deleted."""
    there = task.found()
    for twin in made.twins:
        if twin.seed not in there:
            twin.save(task.place(twin.seed))
            there[twin.seed] = twin
    shutil.rmtree(made.task.checkpoint, ignore_errors=True)
    return replace(made, task=task, twins=tuple(there[seed] for seed in task.seeds))


def _same(one: CompiledModel, other: CompiledModel) -> bool:
    """Whether two models have the same options and weights."""
    weights, others = dict(one.parameters.named()), dict(other.parameters.named())
    return (
        one.options == other.options
        and weights.keys() == others.keys()
        and all(np.array_equal(array, others[name]) for name, array in weights.items())
    )
