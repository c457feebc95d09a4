"""Many runs: programs × dims × seeds, in groups that train together, over any number of workers."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tracr.arguments import number, one_of, whole
from tracr.compress.compressing import compress
from tracr.compress.fast import FastRecipe
from tracr.compress.measuring import Measuring
from tracr.compress.objective import Objective
from tracr.compress.observing import measure
from tracr.compress.projection import sites_of
from tracr.compress.sgd import Recipe, RecipeTrainer, padded_starts
from tracr.compress.store import Row, Store
from tracr.compress.task import task_of
from tracr.errors import TracrError
from tracr.model.designed import DesignedModel
from tracr.values import Value
from tracr.workers import SERIAL, Workers

__all__ = ["ModelRuns", "Swept", "sweep"]

SWEPT_METHODS = ("sgd", "fast")
KEY = ("program", "dim", "seed")
COLUMNS: Mapping[str, str | list[str]] = {
    "program": "string",
    "dim": "int64",
    "seed": "int64",
    "status": "string",
    "error": "string",
    "loss": "float64",
    "output_loss": "float64",
    "layer_loss": "float64",
    "compiled_loss": "float64",
    "accuracy": "float64",
    "cosine": "float64",
    "read_back": ["float32"],
    "curve": ["float32"],
    "W": ["float32"],
}
Inputs = Sequence[Sequence[Value]]


@dataclass(frozen=True)
class ModelRuns:
    """Runs of one model, as data with the model's saved files, so that workers need no shared disk.

    `key` tells models, inputs and settings apart: a worker prepares each of them once. `widest` is the largest dim of
    all groups of the model: with one width for all, programs are compiled once.
    """

    program: str
    key: str
    files: Mapping[str, bytes]
    inputs: Inputs | None
    runs: tuple[tuple[int, int], ...]
    widest: int
    method: str
    recipe: Mapping[str, Any]
    init_scale: float | None


@dataclass(frozen=True)
class Swept:
    """The result of a sweep: runs made now, runs found, runs failed in all; `results` is the file."""

    made: int
    found: int
    failed: int
    results: Path


def sweep(
    models: Mapping[str, DesignedModel],
    dims: Iterable[int] | None,
    seeds: Iterable[int],
    folder: str | Path,
    *,
    method: str = "sgd",
    recipe: Recipe | FastRecipe | None = None,
    inputs: Mapping[str, Inputs] | None = None,
    init_scale: float | None = None,
    group: int = 64,
    workers: Workers = SERIAL,
    retry: bool = False,
    progress: Callable[[int, int, float], None] | None = None,
) -> Swept:
    """Compress every model to every dim with every seed and write the results into `folder` as Parquet.

    A sweep that was stopped can be called again: it repeats only unfinished groups.

    Args:
        models: the models by name.
        dims: the numbers of dimensions; those beyond a model's own are left out. `None`: all, from 1 on.
        seeds: the seeds; a run does not depend on the others.
        folder: the folder of the results. A sweep with other settings is refused.
        method: "sgd" or "fast".
        recipe: as for `compress`.
        inputs: the training inputs of a model, by its name; for the others as for `compress`. Losses, accuracy and
            cosines are measured on the same inputs.
        init_scale: the standard deviation of the random starts, as for `compress`.
        group: runs per group; with "sgd" they train in one compiled program, also with different dims. On a GPU more
            runs per group are faster (1,024 or more).
        workers: `tracr.workers.over_processes(jobs)` or `over_ray()`.
        retry: repeat failed runs.
        progress: called with runs done, runs in all and the best loss, once at the start and after every group.
    """
    one_of("method", method, SWEPT_METHODS)
    whole("group", group, 1)
    scale = None if init_scale is None else number("init_scale", init_scale, low=0)
    chosen = (Recipe if method == "sgd" else FastRecipe)() if recipe is None else recipe
    given = _checked(inputs or {}, models)
    digests = {name: _digest(model, given.get(name)) for name, model in models.items()}
    settings = {"method": method, "recipe": asdict(chosen), "init_scale": scale}
    labels = {f"labels {name}": model.residual.labels for name, model in models.items()}
    store = Store(folder, {**settings, **labels}, digests, COLUMNS, KEY)
    wanted = _runs(models, None if dims is None else list(dims), list(seeds))
    if not wanted:
        raise TracrError("there is nothing to sweep over", hint="give programs, dims within their sizes, and seeds")
    there = store.done(retry=set(wanted) if retry else ()) & set(wanted)
    missing = [run for run in wanted if run not in there]
    template = ModelRuns("", "", {}, None, (), 0, method, asdict(chosen), scale)
    groups = _groups(models, missing, given, {name: f"{digests[name]} {settings}" for name in models}, group, template)
    made = _make(store, workers.map(run_group, groups), len(there), len(wanted), progress)
    failed = sum(row["status"] != "done" for row in store.rows())
    return Swept(made, len(there), failed, store.finish())


def _make(
    store: Store,
    results: Iterable[list[Row]],
    there: int,
    total: int,
    progress: Callable[[int, int, float], None] | None,
) -> int:
    """Store the results of all groups as they come; returns their number."""
    best, made = np.inf, 0
    tell = progress or (lambda done, total, best: None)
    tell(there, total, best)
    for rows in results:
        store.add(rows)
        made += len(rows)
        best = min([best, *(row["loss"] for row in rows if row["status"] == "done")])
        tell(there + made, total, best)
    return made


def _checked(inputs: Mapping[str, Inputs], models: Mapping[str, DesignedModel]) -> dict[str, Inputs]:
    for name in inputs:
        one_of("a model with inputs", name, models)
    return dict(inputs)


def _digest(model: DesignedModel, inputs: Inputs | None) -> str:
    """The digest of a model's options and weights, and of the inputs if they are given."""
    found = hashlib.sha256(repr(model.options).encode())
    for name, array in model.parameters.named():
        found.update(name.encode() + np.ascontiguousarray(array).tobytes())
    if inputs is not None:
        found.update(repr([list(tokens) for tokens in inputs]).encode())
    return found.hexdigest()[:16]


def _runs(models: Mapping[str, DesignedModel], dims: list[int] | None, seeds: list[int]) -> list[tuple[str, int, int]]:
    return [
        (name, dim, seed)
        for name, model in models.items()
        for dim in (range(1, model.d_model + 1) if dims is None else dims)
        if 1 <= dim <= model.d_model
        for seed in seeds
    ]


def _groups(
    models: Mapping[str, DesignedModel],
    runs: list[tuple[str, int, int]],
    inputs: Mapping[str, Inputs],
    keys: Mapping[str, str],
    most: int,
    template: ModelRuns,
) -> Iterator[ModelRuns]:
    """The runs of each model in groups of nearly the same size, because a new size is compiled anew."""
    for name, model in models.items():
        mine = [(dim, seed) for program, dim, seed in runs if program == name]
        if not mine:
            continue
        with tempfile.TemporaryDirectory() as aside:
            model.save(Path(aside) / "model")
            files = {entry.name: entry.read_bytes() for entry in (Path(aside) / "model").iterdir()}
        of_model = replace(
            template,
            program=name,
            key=keys[name],
            files=files,
            inputs=inputs.get(name),
            widest=max(dim for dim, _ in mine),
        )
        for part in np.array_split(np.array(mine), -(-len(mine) // most)):
            yield replace(of_model, runs=tuple((int(dim), int(seed)) for dim, seed in part))


def run_group(group: ModelRuns) -> list[Row]:
    """The results of a group; a failed run is also a result."""
    try:
        return list(_prepared(group).rows(group))
    except Exception as error:
        return [_failed(group.program, run, f"{type(error).__name__}: {error}".strip()) for run in group.runs]


class _BySgd:
    """The paper's recipe for the runs of a model; programs are compiled once for all groups of the same size."""

    def __init__(self, model: DesignedModel, group: ModelRuns) -> None:
        task = task_of(model, group.inputs)
        sites = sites_of(task.network, "one")
        self._objective = Objective(task, sites)
        self._trainer = RecipeTrainer(self._objective, Recipe(**group.recipe))
        self._measuring = Measuring(model, task, sites)
        self._size = len(group.runs)

    def rows(self, group: ModelRuns) -> Iterator[Row]:
        """Train all runs together, and the last one several times if the group is smaller than the first one was."""
        runs = [*group.runs, *[group.runs[-1]] * (self._size - len(group.runs))]
        found = self._trainer.train(padded_starts(self._objective, runs, group.init_scale, group.widest))
        if found.interrupted:
            raise KeyboardInterrupt
        matrices = np.asarray(found.params["W"])
        for place, (run, measured) in enumerate(zip(group.runs, self._measuring({"W": matrices}), strict=False)):
            if not np.isfinite(matrices[place]).all():
                yield _failed(group.program, run, "diverged")
                continue
            W = matrices[place, 0, :, : run[0]]
            yield _done(group.program, run, W, found.curve[:, place]) | {
                "loss": measured.output_loss + measured.layer_loss,
                "output_loss": measured.output_loss,
                "layer_loss": measured.layer_loss,
                "compiled_loss": self._measuring.compiled_loss,
                "accuracy": measured.accuracy,
                "cosine": measured.cosine,
            }


class _ByFast:
    """Our optimiser, one run after the other."""

    def __init__(self, model: DesignedModel, group: ModelRuns) -> None:
        self._model = model

    def rows(self, group: ModelRuns) -> Iterator[Row]:
        """The results of the runs."""
        for run in group.runs:
            try:
                yield self._row(group, run)
            except Exception as error:
                yield _failed(group.program, run, f"{type(error).__name__}: {error}".strip())

    def _row(self, group: ModelRuns, run: tuple[int, int]) -> Row:
        recipe = FastRecipe(**group.recipe)
        made = compress(
            self._model, run[0], "fast", run[1], inputs=group.inputs, recipe=recipe, init_scale=group.init_scale
        )
        if made.training.interrupted:
            raise KeyboardInterrupt
        accuracy, cosine = measure(made, group.inputs)
        training = made.training
        return _done(group.program, run, made.W, training.curve) | {
            "loss": training.loss,
            "output_loss": training.output_loss,
            "layer_loss": training.layer_loss,
            "compiled_loss": training.compiled_loss,
            "accuracy": accuracy,
            "cosine": cosine,
        }


_kept: dict[str, _BySgd | _ByFast] = {}


def _prepared(group: ModelRuns) -> _BySgd | _ByFast:
    """What the groups of one model share: its inputs and compiled programs. The last one is kept."""
    if group.key not in _kept:
        from tracr.saving import models

        with tempfile.TemporaryDirectory() as aside:
            for name, content in group.files.items():
                (Path(aside) / name).write_bytes(content)
            model = models.load(aside)
        _kept.clear()
        _kept[group.key] = _BySgd(model, group) if group.method == "sgd" else _ByFast(model, group)
    return _kept[group.key]


def _failed(program: str, run: tuple[int, int], error: str) -> Row:
    return {"program": program, "dim": run[0], "seed": run[1], "status": "failed", "error": error}


def _done(program: str, run: tuple[int, int], W: Any, curve: Iterable[float]) -> Row:
    return {
        "program": program,
        "dim": run[0],
        "seed": run[1],
        "status": "done",
        "error": "",
        "read_back": (np.asarray(W, dtype=np.float64) ** 2).sum(axis=1).tolist(),
        "curve": [float(loss) for loss in curve],
        "W": np.asarray(W).ravel().tolist(),
    }
