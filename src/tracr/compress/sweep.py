"""Many runs: programs × dims × seeds, in groups that train together, over any number of workers."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tracr.compress.compressing import compress, measured
from tracr.compress.fast import FastRecipe
from tracr.compress.model import CompressedModel, Training
from tracr.compress.objective import Objective
from tracr.compress.projection import Projection, sites_of
from tracr.compress.sgd import Recipe, starts, train
from tracr.compress.store import Row, Store
from tracr.compress.task import task_of
from tracr.errors import TracrError
from tracr.model.designed import DesignedModel
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
    "kept": ["string"],
    "curve": ["float32"],
    "W": ["float32"],
}


@dataclass(frozen=True)
class ModelRuns:
    """Runs of one model, as data with the model's saved files, so that workers need no shared disk."""

    program: str
    files: Mapping[str, bytes]
    runs: tuple[tuple[int, int], ...]
    method: str
    recipe: Mapping[str, Any]


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
        group: runs per group; with "sgd" they train in one compiled program, also with different dims.
        workers: `tracr.workers.over_processes(jobs)` or `over_ray()`.
        retry: repeat failed runs.
        progress: called with runs done, runs in all and the best loss, once at the start and after every group.
    """
    _check(method, group)
    chosen = (Recipe if method == "sgd" else FastRecipe)() if recipe is None else recipe
    digests = {name: _digest(model) for name, model in models.items()}
    store = Store(folder, {"method": method, "recipe": asdict(chosen)}, digests, COLUMNS, KEY)
    wanted = _runs(models, None if dims is None else list(dims), list(seeds))
    if not wanted:
        raise TracrError("there is nothing to sweep over", hint="give programs, dims within their sizes, and seeds")
    there = store.done(retry=retry) & set(wanted)
    groups = _groups(models, [run for run in wanted if run not in there], method, asdict(chosen), group)
    best, made, failed = np.inf, 0, 0
    if progress is not None:
        progress(len(there), len(wanted), best)
    for rows in workers.map(run_group, groups):
        store.add(rows)
        made += len(rows)
        best = min([best, *(row["loss"] for row in rows if row["status"] == "done")])
        if progress is not None:
            progress(len(there) + made, len(wanted), best)
    failed = sum(row["status"] != "done" for row in store.rows())
    return Swept(made, len(there), failed, store.finish())


def _check(method: str, group: int) -> None:
    if method not in SWEPT_METHODS:
        raise TracrError(f"there is no sweep with method {method!r}", hint=f"methods are {', '.join(SWEPT_METHODS)}")
    if group < 1:
        raise TracrError(f"a group has at least one run, not {group}", hint="use group=1 or more")


def _digest(model: DesignedModel) -> str:
    """The digest of a model's options and weights."""
    found = hashlib.sha256(repr(model.options).encode())
    for name, array in model.parameters.named():
        found.update(name.encode() + np.ascontiguousarray(array).tobytes())
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
    method: str,
    recipe: Mapping[str, Any],
    size: int,
) -> Iterator[ModelRuns]:
    for name, model in models.items():
        mine = [(dim, seed) for program, dim, seed in runs if program == name]
        if not mine:
            continue
        with tempfile.TemporaryDirectory() as aside:
            model.save(Path(aside) / "model")
            files = {entry.name: entry.read_bytes() for entry in (Path(aside) / "model").iterdir()}
        for start in range(0, len(mine), size):
            yield ModelRuns(name, files, tuple(mine[start : start + size]), method, recipe)


def run_group(group: ModelRuns) -> list[Row]:
    """The results of a group; a failed run is also a result."""
    try:
        with tempfile.TemporaryDirectory() as aside:
            for name, content in group.files.items():
                (Path(aside) / name).write_bytes(content)
            from tracr.saving import models

            model = models.load(aside)
        make = _by_sgd if group.method == "sgd" else _by_fast
        return [_row(group.program, dim, seed, made) for (dim, seed), made in make(model, group)]
    except Exception as error:
        return [_row(group.program, dim, seed, f"{type(error).__name__}: {error}".strip()) for dim, seed in group.runs]


def _by_sgd(model: DesignedModel, group: ModelRuns) -> Iterator[tuple[tuple[int, int], CompressedModel | str]]:
    """All runs together. A run of d dimensions is padded with zero columns, whose gradient is 0, so they stay zero."""
    task = task_of(model)
    objective = Objective(task, sites_of(task.network, "one"))
    widest = max(dim for dim, _ in group.runs)
    W = np.zeros((len(group.runs), 1, task.network.width, widest), dtype=np.float32)
    for number, (dim, seed) in enumerate(group.runs):
        W[number, :, :, :dim] = np.asarray(starts(objective, dim, [seed], None, False)["W"][0])
    found = train(objective, {"W": objective.jnp.asarray(W)}, Recipe(**group.recipe))
    if found.interrupted:
        raise KeyboardInterrupt
    for number, (dim, seed) in enumerate(group.runs):
        matrices = np.asarray(found.params["W"][number], dtype=np.float64)[:, :, :dim]
        if not np.isfinite(matrices).all():
            yield (dim, seed), "diverged"
            continue
        curve = tuple(found.curve[:, number].tolist())
        training = Training("sgd", seed, steps=tuple(found.steps.tolist()), curve=curve)
        yield (dim, seed), measured(model, task, Projection(matrices, objective.sites), training)


def _by_fast(model: DesignedModel, group: ModelRuns) -> Iterator[tuple[tuple[int, int], CompressedModel | str]]:
    for dim, seed in group.runs:
        try:
            made = compress(model, dim, "fast", seed, recipe=FastRecipe(**group.recipe))
            if made.training.interrupted:
                raise KeyboardInterrupt
            yield (dim, seed), made
        except Exception as error:
            yield (dim, seed), f"{type(error).__name__}: {error}".strip()


def _row(program: str, dim: int, seed: int, made: CompressedModel | str) -> Row:
    if isinstance(made, str):
        return {"program": program, "dim": dim, "seed": seed, "status": "failed", "error": made}
    from tracr.compress.report import measure

    training = made.training
    accuracy, cosine = measure(made)
    return {
        "program": program,
        "dim": dim,
        "seed": seed,
        "status": "done",
        "error": "",
        "loss": training.loss,
        "output_loss": training.output_loss,
        "layer_loss": training.layer_loss,
        "compiled_loss": training.compiled_loss,
        "accuracy": accuracy,
        "cosine": cosine,
        "kept": made.kept,
        "curve": list(training.curve),
        "W": made.W.ravel().tolist(),
    }
