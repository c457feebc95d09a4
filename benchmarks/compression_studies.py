"""Studies of compression by training: many runs in one compiled program, their data, and their measurements.

    python benchmarks/compression_studies.py train paper OUT      the paper's recipe: all dims, 3 reruns of 32 seeds
    python benchmarks/compression_studies.py train settings OUT   gap, start and decay, the same steps for all
    python benchmarks/compression_studies.py train faithful OUT   does the optimiser leave a faithful solution?
    python benchmarks/compression_studies.py train variants OUT   other weightings of the loss
    python benchmarks/compression_studies.py train sharing OUT    per-layer, read-write and weights-trained variants
    python benchmarks/compression_studies.py train cost OUT       20 programs at 9 ratios D/d
    python benchmarks/compression_studies.py fast OUT             our optimiser on sort_unique, below 9 dimensions
    python benchmarks/compression_studies.py lossless OUT         dimensions of solutions without loss, 20 programs
    python benchmarks/compression_studies.py kick OUT             the loss after one step from the faithful solution
    python benchmarks/compression_studies.py measure OUT          measures what was trained; --watch: until OUT/STOP

Training writes OUT/PART.npz for each part of a study: matrices, training curves, and the losses at half time and at the
end. Measuring, on any machine, writes OUT/PART.json: losses, accuracy, cosines and causal slopes in float64.
A part that is there is not repeated, so a stopped study can be started again (after its claims, OUT/*.training and
OUT/*.claim, are removed); several processes can work on one study. `--steps`, `--seeds`, `--programs`, `--gaps`,
`--rates` and `--dims` choose runs. `--together` trains parts of one program that differ in their gaps, or belong to
different studies, in one compiled program. `--save N` saves the state of a training every N seconds; when it is started
again, it goes on from there. Needs numpy, jax and optax. `benchmarks/compression_data.py` collects the runs.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).resolve().parent]
# Python has a package `compression` that JAX imports, and a file here must not be taken for it.

import jax
import jax.numpy as jnp
import numpy as np
import optax

import tracr
from tracr.compress.closed import exact_projection
from tracr.compress.fast import FastRecipe
from tracr.compress.measuring import Measuring
from tracr.compress.narrow import least_dim
from tracr.compress.objective import Objective
from tracr.compress.paper import STUDIES, study
from tracr.compress.projection import sites_of
from tracr.compress.readings import seen
from tracr.compress.sgd import Recipe
from tracr.compress.task import Task, all_inputs, task_of
from tracr.rasp import programs as library

GAP = 256.0
FAITHFUL = ("sort_unique", "frac_prevs", "hist", "reverse", "has_prev")
"""The programs of `faithful`."""
LARGE = ("dyck2", "closer", "induction", "shuffle_dyck2", "sort_freq")
"""The programs of the library that `cost` leaves out: the other 20 are smaller."""
LOGIT = 16.0  # the logit of the right value in the faithful solution
POINTS = 50  # points of a training curve
TOGETHER = 64  # runs evaluated together on all inputs


@dataclass(frozen=True)
class Run:
    """A run: its start (a standard deviation, None for 1/√D, or "faithful"), and how it is trained."""

    dim: int
    seed: int
    rerun: int = 0
    start: float | str | None = None
    rate: float = 1e-3
    decay: float = 0.1
    output_weight: float = 1.0
    layer_weight: float = 1.0


@dataclass(frozen=True)
class Part:
    """A part of a study: runs of one program that train together, in one file."""

    study: str
    program: str
    steps: int
    runs: tuple[Run, ...]
    gap: float = GAP
    sharing: str = "one"
    train_weights: bool = False

    @property
    def name(self) -> str:
        """The stem of its files."""
        kind = ("" if self.gap == GAP else f"-gap{self.gap:g}") + ("" if self.sharing == "one" else f"-{self.sharing}")
        return f"{self.study}-{self.program}{kind}{'-weights' if self.train_weights else ''}"


def prepared(program: str, gap: float = GAP) -> tuple[tracr.CompiledModel, Any]:
    """A case study of the paper, or a program of the library at level 0 with all inputs of 4 of its first 3 tokens."""
    if program in STUDIES:
        return study(program, gap)
    example = library.EXAMPLES[program]
    model = tracr.compile(example.program, example.vocab[:3], 4, level=0, gap=gap)
    return model, all_inputs(model, lengths=[4])


# Training: each run has its own start, learning rate, decay, gap and weights of the loss; each rerun its own batches


class Training:
    """Trains the runs of parts in one compiled program: arrays [rerun, run, ...].

    The parts have the same program and steps. With different gaps, each run has its own attention weights; the targets
    are those of the first part (from a gap of 40 on, what compiled sub-layers write differs by less than 1e-8).
    """

    def __init__(self, parts: Sequence[Part], seed: int = 0) -> None:
        self.part = part = parts[0]
        self.tasks = {one.gap: task_of(*prepared(one.program, one.gap)) for one in parts}
        self.task = self.tasks[part.gap]
        self.objective = Objective(self.task, sites_of(self.task.network, part.sharing))
        self.recipe = Recipe(steps=part.steps)
        self.seed = seed
        owned = sorted(((one, run) for one in parts for run in one.runs), key=lambda pair: pair[1].rerun)
        self.owners, self.runs = [one for one, _ in owned], [run for _, run in owned]
        self.reruns = len({run.rerun for run in self.runs})
        self.rate, self.decay = self._of_runs("rate"), self._of_runs("decay")
        self.weights = self._of_runs("output_weight"), self._of_runs("layer_weight")
        self.moments = optax.scale_by_adam(b1=self.recipe.b1, b2=self.recipe.b2)
        last = self.recipe.final_rate / self.recipe.learning_rate
        self.fall = optax.linear_schedule(1.0, last, max(1, part.steps // 2))
        self.batched = len(self.task) > self.recipe.batch
        self.same = self.objective.weights()
        self.varied = self._varied() if len(self.tasks) > 1 else []
        self.of_rerun = jax.vmap(jax.value_and_grad(self._loss), (0, 0, 0, None))
        self.advance = jax.jit(self._advance, static_argnums=3)
        self.evaluate = jax.jit(self._evaluate)

    def _of_runs(self, name: str) -> Any:
        values = [getattr(run, name) for run in self.runs]
        return jnp.asarray(np.reshape(values, (self.reruns, -1)), dtype=jnp.float32)

    def _varied(self) -> list[dict[str, Any]]:
        """The weights of each sub-layer that differ between gaps [rerun, run, ...]."""
        own = {gap: Objective(task, self.objective.sites).weights() for gap, task in self.tasks.items()}
        found: list[dict[str, Any]] = []
        for place, weights in enumerate(self.same):
            each = {name: {gap: np.asarray(parts[place][name]) for gap, parts in own.items()} for name in weights}
            found.append(
                {
                    name: jnp.asarray(
                        np.reshape(
                            [arrays[one.gap] for one in self.owners], (self.reruns, -1, *arrays[self.part.gap].shape)
                        )
                    )
                    for name, arrays in each.items()
                    if any(not np.array_equal(array, arrays[self.part.gap]) for array in arrays.values())
                }
            )
        return found

    def _losses(self, params: Any, varied: Any, batch: Any = None) -> Any:
        if varied:
            params = params | {"parts": [same | own for same, own in zip(self.same, varied, strict=True)]}
        return self.objective.losses(params, batch)

    def _loss(self, params: Any, weights: Any, varied: Any, batch: Any) -> Any:
        found = self._losses(params, varied, batch)
        return weights[0] * found.output + weights[1] * found.layers.sum()

    def gradient(self, params: Any, batches: Any) -> Any:
        """The losses and gradients of all runs. Each rerun has its own batch; without batches, all train together."""
        if batches is None:
            return jax.vmap(self.of_rerun, (0, 0, 0, None))(params, self.weights, self.varied, None)
        found = []
        for rerun in range(self.reruns):
            mine = jax.tree.map(lambda array, rerun=rerun: array[rerun], (params, self.weights, self.varied))
            found.append(self.of_rerun(*mine, batches[rerun]))
        return jax.tree.map(lambda *arrays: jnp.stack(arrays), *found)

    def starts(self) -> Any:
        """The first matrices, with zero columns beyond a run's dims, which have no gradient and stay zero."""
        width, count = self.task.network.width, self.objective.sites.count
        W = np.zeros((len(self.runs), count, width, max(run.dim for run in self.runs)), dtype=np.float32)
        for number, run in enumerate(self.runs):
            rng = np.random.default_rng([run.seed, run.rerun, self.seed])
            if run.start == "faithful":
                turn = np.linalg.qr(rng.normal(size=(run.dim, run.dim)))[0]
                W[number, 0, :, : run.dim] = faithful_solution(self.tasks[self.owners[number].gap]) @ turn
            else:
                scale = width**-0.5 if run.start is None else float(run.start)
                W[number, :, :, : run.dim] = rng.normal(scale=scale, size=(count, width, run.dim))
        params: dict[str, Any] = {"W": jnp.asarray(W)}
        if self.part.train_weights:
            params["parts"] = jax.tree.map(lambda array: jnp.stack([array] * len(self.runs)), self.objective.weights())
        return jax.tree.map(lambda array: array.reshape(self.reruns, -1, *array.shape[1:]), params)

    def _advance(self, params: Any, state: Any, start: Any, size: int) -> Any:
        """Some steps of all runs; returns also their mean losses."""
        batches = None
        if self.batched:
            key = jax.random.fold_in(jax.random.key(self.seed), start)
            batches = jax.random.randint(key, (size, self.reruns, self.recipe.batch), 0, len(self.task))

        def step(carry: Any, given: Any) -> Any:
            params, state, total = carry
            number, batch = given
            loss, slope = self.gradient(params, batch)
            change, state = self.moments.update(slope, state)
            rate = self.rate * self.fall(number)

            def moved(old: Any, new: Any) -> Any:
                shape = (*rate.shape, *[1] * (old.ndim - 2))
                return old - rate.reshape(shape) * (new + self.decay.reshape(shape) * old)

            return (jax.tree.map(moved, params, change), state, total + loss), None

        carry = params, state, jnp.zeros_like(self.rate)
        (params, state, total), _ = jax.lax.scan(step, carry, (start + jnp.arange(size), batches))
        return params, state, total / size

    def _evaluate(self, params: Any) -> Any:
        """The unweighted losses of each run on all inputs [run, 2]: of the output, and of the sub-layers together."""
        flat = jax.tree.map(lambda array: array.reshape(-1, *array.shape[2:]), (params, self.varied))

        def one(given: Any) -> Any:
            found = self._losses(*given)
            return jnp.stack([found.output, found.layers.sum()])

        return jax.lax.map(one, flat, batch_size=TOGETHER)

    def arrays(self, saved: Path | None = None, every: float = 0.0, as_saved: bool = False) -> dict[str, Any]:
        """Train; the matrices, curve [point, run], and losses at half time and at the end.

        With `every`, the state is saved as often as that (seconds), and a saved one is gone on from. `as_saved`: it is
        the end, and `done` has the number of its steps.
        """
        params, steps = self.starts(), self.part.steps
        state, size = self.moments.init(params), max(1, -(-steps // POINTS))
        curve: list[Any] = []
        half = None
        if saved is not None and saved.exists():
            (params, state), curve, half = _read_state(saved, (params, state))
        last = time.perf_counter()
        self.done = min(len(curve) * size, steps) if as_saved else steps
        for start in range(len(curve) * size, self.done, size):
            params, state, loss = self.advance(params, state, start, min(size, steps - start))
            curve.append(loss)
            if half is None and 2 * (start + size) >= steps:
                half = np.asarray(self.evaluate(params))
            if saved is not None and every:
                jax.block_until_ready(loss)
                if time.perf_counter() - last > every:
                    last = time.perf_counter()
                    _save_state(saved, (params, state), curve, half)
                    print(f"{saved.stem}: {start + size:,} of {steps:,} steps", flush=True)
        end = np.asarray(self.evaluate(params))
        flat = jax.tree.map(lambda array: np.asarray(array).reshape(-1, *array.shape[2:]), params)
        parts = {
            f"{place} {name}": array
            for place, weights in enumerate(flat.get("parts", []))
            for name, array in weights.items()
        }
        return {
            "W": flat["W"],
            "curve": np.array([np.asarray(loss).reshape(-1) for loss in curve]),
            "half": end if half is None else half,  # saved before half time
            "end": end,
            **parts,
        }


@functools.cache
def faithful_solution(task: Task) -> Any:
    """The closed form, with which every read is exact; one-hot outputs are written √LOGIT and read √LOGIT times larger.

    The output is written where nothing else is read (all reads of all streams are exact), so a larger output changes no
    other read. The larger logits make the output loss small: without them, the closed form is no minimum of the loss.
    """
    W = exact_projection(seen(task))
    if all(output.categorical for output in task.outputs):
        W[np.any(task.network.W_U, axis=1)] *= LOGIT**0.5
    return W


# The studies


def _names(given: list[str], known: Any) -> list[str]:
    return [name for name in known if not given or name in given]


def paper(seeds: int, steps: int, names: list[str]) -> Iterator[Part]:
    """Every dim of the paper's two programs; three reruns with other starts and other batches."""
    for name in _names(names, STUDIES):
        width = study(name)[0].d_model
        dims = range(2, width + 1) if width < 16 else sorted({5, 7, *range(4, width + 1, 2)})
        runs = itertools.product(range(3), dims, range(seeds))
        yield Part("paper", name, steps, tuple(Run(dim, seed, rerun) for rerun, dim, seed in runs))


SETTINGS: dict[float, tuple[dict[str, Any], ...]] = {
    GAP: ({"start": 1.0}, {"decay": 0.0}, {"start": 1.0, "decay": 0.0}),
    40.0: ({}, {"start": 1.0}),
    100.0: ({},),
}
"""The settings of each gap that differ from those of the recipe."""


def settings(seeds: int, steps: int, names: list[str]) -> Iterator[Part]:
    """Gap, scale of the start and weight decay, with as many steps as the recipe, whose own runs are in `paper`."""
    for (gap, arms), name in itertools.product(SETTINGS.items(), _names(names, STUDIES)):
        dims = (8, 6) if name == "frac_prevs" else (12, 8)
        runs = itertools.product(range(3), dims, arms, range(seeds))
        yield Part("settings", name, steps, tuple(Run(dim, seed, rerun, **arm) for rerun, dim, arm, seed in runs), gap)


def faithful(seeds: int, steps: int, names: list[str]) -> Iterator[Part]:
    """Starts {1/√D, 1, the faithful solution} × learning rate × gap × decay, with the dims of the closed form."""
    for gap, name in itertools.product((GAP, 40.0), _names(names, FAITHFUL)):
        dim = faithful_solution(task_of(*prepared(name, gap))).shape[1]
        kinds = itertools.product(("faithful", None, 1.0), (1e-3, 1e-4, 1e-5), (0.1, 0.0), range(seeds))
        runs = (
            Run(dim, seed, 0, start, rate, decay)
            for start, rate, decay, seed in kinds
            if rate > 1e-5 or start == "faithful"  # random starts do not get far with so small a rate
        )
        yield Part("faithful", name, steps, tuple(runs), gap)


WEIGHTS = ((1.0, 1.0), (1.0, 0.1), (0.1, 1.0), (1.0, 0.0), (0.0, 1.0))


def variants(seeds: int, steps: int, names: list[str]) -> Iterator[Part]:
    """Weights of the output loss and of the sub-layers' losses."""
    for name in _names(names, STUDIES):
        dims = (6, 8) if name == "frac_prevs" else (8, 12)
        runs = itertools.product(range(3), dims, WEIGHTS, range(seeds))
        made = (
            Run(dim, seed, rerun, output_weight=output, layer_weight=layer)
            for rerun, dim, (output, layer), seed in runs
        )
        yield Part("variants", name, steps, tuple(made))


def sharing(seeds: int, steps: int, names: list[str]) -> Iterator[Part]:
    """Projections per layer, for reads and writes, and weights of sub-layers that are trained too."""
    for name in _names(names, STUDIES):
        dims = (6, 8) if name == "frac_prevs" else (8, 12)
        runs = tuple(Run(dim, seed, rerun) for rerun, dim, seed in itertools.product(range(3), dims, range(seeds)))
        for kind in ("layer", "read-write"):
            yield Part("sharing", name, steps, runs, sharing=kind)
        yield Part("sharing", name, steps, runs, train_weights=True)


def cost(seeds: int, steps: int, names: list[str]) -> Iterator[Part]:
    """Twenty programs at nine ratios D/d."""
    for name in _names(names, [name for name in library.EXAMPLES if name not in LARGE]):
        width = prepared(name)[0].d_model
        dims = sorted({max(1, round(width / ratio)) for ratio in (1, 1.15, 1.3, 1.5, 1.75, 2, 2.5, 3, 4)})
        yield Part("cost", name, steps, tuple(Run(dim, seed) for dim in dims for seed in range(seeds)))


STUDY = {
    "paper": (paper, 32, 300_000),
    "settings": (settings, 32, 300_000),
    "faithful": (faithful, 32, 100_000),
    "variants": (variants, 32, 100_000),
    "sharing": (sharing, 32, 100_000),
    "cost": (cost, 16, 50_000),
}
"""Each study with its seeds and steps."""


def parts_of(given: argparse.Namespace) -> Iterator[Part]:
    """The parts of the studies that are asked for, with the runs that are asked for."""
    for name in given.study:
        make, seeds, steps = STUDY[name]
        for part in make(given.seeds or seeds, given.steps or steps, given.programs):
            runs = tuple(
                run
                for run in part.runs
                if (not given.rates or run.rate in given.rates)
                and (not given.starts or str(run.start) in given.starts)
                and (part.study != "paper" or not given.dims or run.dim in given.dims)
            )
            if runs and (not given.gaps or part.gap in given.gaps):
                yield replace(part, runs=runs)


def train(given: argparse.Namespace) -> None:
    """Train the parts that are not there."""
    groups: dict[Any, list[Part]] = {}
    for part in parts_of(given):
        alike = (part.program, part.steps, part.sharing, part.train_weights) if given.together else part.name
        if not (given.out / f"{part.name}.npz").exists():
            groups.setdefault(alike, []).append(part)
    for parts in groups.values():
        claim = given.out / f"{parts[0].name}.training"
        if not _claimed(claim):
            continue
        begin = time.perf_counter()
        saved = given.out / f"{'+'.join(part.name for part in parts)}.saved"
        try:
            training = Training(parts, given.seed)
            found = training.arrays(saved, given.save, given.as_saved)
        except Exception as error:  # the other parts can still be made
            print(f"{saved.stem} FAILED: {type(error).__name__}: {error}", flush=True)
            continue
        seconds = time.perf_counter() - begin
        for part in parts:
            mine = [number for number, owner in enumerate(training.owners) if owner is part]
            about = asdict(replace(part, runs=(), steps=training.done)) | {
                "schedule": part.steps,
                "seed": given.seed,
                "device": str(jax.devices()[0]),
                "seconds": round(seconds, 1),
                "runs": [asdict(training.runs[number]) for number in mine],
            }
            own = {name: array[:, mine] if name == "curve" else array[mine] for name, array in found.items()}
            _written(given.out / f"{part.name}.npz", {"about": json.dumps(about), **own})
        claim.unlink()
        saved.unlink(missing_ok=True)
        runs = len(training.runs)
        rate = runs * training.done / seconds
        print(f"{saved.stem}: {runs} runs, {seconds:.0f} s, {rate:,.0f} run-steps/s", flush=True)


def _save_state(path: Path, trees: Any, curve: list[Any], half: Any) -> None:
    leaves = {f"state {number}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(trees))}
    more = {} if half is None else {"half": half}
    _written(path, {"curve": np.array([np.asarray(loss) for loss in curve]), **more, **leaves})


def _read_state(path: Path, trees: Any) -> tuple[Any, list[Any], Any]:
    """What was saved: parameters and moments with the form of `trees`, the curve, and the losses at half time."""
    with np.load(path) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    leaves = [jnp.asarray(found[f"state {number}"]) for number in range(len(jax.tree.leaves(trees)))]
    return jax.tree.unflatten(jax.tree.structure(trees), leaves), list(found["curve"]), found.get("half")


def _written(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays: the file is there as a whole, or not at all."""
    aside = path.with_suffix(".part")
    with aside.open("wb") as file:
        np.savez_compressed(file, **arrays)
    aside.rename(path)


def _claimed(claim: Path) -> bool:
    """Whether this process may do a piece of work: no other one has claimed it before."""
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


# Measuring


def measured(path: Path) -> dict[str, Any]:
    """The measurements of a part: a row for every run."""
    begin = time.perf_counter()
    with np.load(path) as arrays:
        about = json.loads(str(arrays["about"]))
        found = {name: arrays[name] for name in arrays.files if name != "about"}
    runs = about.pop("runs")
    model, inputs = prepared(about["program"], about["gap"])
    rows = [
        {**run, **row, "half": half.tolist(), "curve": [float(f"{loss:.3g}") for loss in curve]}
        for run, row, half, curve in zip(
            runs, _rows(model, inputs, about["sharing"], found), found["half"], found["curve"].T, strict=True
        )
    ]
    return {
        **about,
        "width": model.d_model,
        "labels": list(model.residual.labels),
        "measuring_seconds": round(time.perf_counter() - begin, 1),
        "runs": rows,
    }


def _rows(model: tracr.CompiledModel, inputs: Any, sharing: str, found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    task = task_of(model, inputs)
    measuring = Measuring(model, task, sites_of(task.network, sharing))
    params: dict[str, Any] = {"W": found["W"]}
    if any(" " in name for name in found):
        params["parts"] = [{} for _ in task.network.parts]
    for name in found:
        if " " in name:
            place, weight = name.split()
            params["parts"][int(place)][weight] = found[name]
    slopes = measuring.slopes(params)
    parts = [part.name for part in task.network.parts]
    for number, one in enumerate(measuring(params)):
        W = params["W"][number, 0].astype(float)
        yield {
            "output_loss": one.output_loss,
            "layer_loss": one.layer_loss,
            "compiled_loss": measuring.compiled_loss,
            "accuracy": one.accuracy,
            "cosine": one.cosine,
            "cosines": dict(zip(parts, one.cosines, strict=True)),
            "slopes": {name: float(values[number]) for name, values in slopes.items()},
            "read_back": (W**2).sum(axis=1).round(5).tolist(),
        }


def measure(given: argparse.Namespace) -> None:
    """Measure the parts that are trained; with --watch, wait for others until the file STOP is there."""
    while True:
        for path in sorted(given.out.glob("*.npz"), key=lambda path: path.stat().st_mtime):
            target, claim = path.with_suffix(".json"), path.with_suffix(".claim")
            if target.exists() or not _claimed(claim):
                continue
            try:
                result = measured(path)
                aside = path.with_suffix(".json.part")
                aside.write_text(json.dumps(result) + "\n")
                aside.rename(target)
                print(f"{target.name}: {result['measuring_seconds']} s", flush=True)
            except Exception as error:  # the other parts can still be measured
                print(f"{target.name} FAILED: {type(error).__name__}: {error}", flush=True)
            finally:
                claim.unlink()
        if not given.watch or (given.out / "STOP").exists():
            return
        time.sleep(2)


def fast(given: argparse.Namespace) -> None:
    """Our optimiser on sort_unique below 9 dimensions, each seed in its own file."""
    model, inputs = prepared("sort_unique")
    for seed, dim in itertools.product(range(given.seeds or 8), given.dims or (8, 6, 7, 4, 5)):
        kinds = "all" if given.rounds is None else f"rounds{given.rounds}"
        path = given.out / f"fast-sort_unique-{dim}-{seed}{'' if kinds == 'all' else '-' + kinds}.json"
        claim = path.with_suffix(".claim")
        if path.exists() or not _claimed(claim):
            continue
        begin, busy = time.perf_counter(), time.process_time()
        recipe = FastRecipe() if given.rounds is None else FastRecipe(rounds=given.rounds)
        small = tracr.compress(model, dim, "fast", seed, inputs=inputs, recipe=recipe)
        busy = time.process_time() - busy
        report = small.report(inputs)
        found = {
            "dim": dim,
            "seed": seed,
            "loss": small.training.loss,
            "output_loss": small.training.output_loss,
            "starts": list(small.training.starts),
            "kinds": kinds,
            "curve": list(zip(small.training.steps, small.training.curve, strict=True)),
            "accuracy": report.accuracy,
            "cosines": report.cosine,
            "slopes": {swap.variable: swap.slope for swap in report.swaps},
            "seconds": round(time.perf_counter() - begin, 1),
            "processor_seconds": round(busy, 1),
            "device": str(jax.devices()[0]),
        }
        path.write_text(json.dumps(found) + "\n")
        claim.unlink()
        print(path.name, found["loss"], found["seconds"], flush=True)


def lossless(given: argparse.Namespace) -> None:
    """The dimensions of the closed form without loss, and the bound below which there is none, of `cost`'s programs."""
    rows = []
    for name in _names(given.programs, [name for name in library.EXAMPLES if name not in LARGE]):
        model, inputs = prepared(name)
        places = seen(task_of(model, inputs))
        closed = exact_projection(places).shape[1]
        rows.append({"program": name, "width": model.d_model, "closed": closed, "bound": least_dim(places)[0]})
    (given.out / "lossless.json").write_text(json.dumps(rows) + "\n")


def kick(given: argparse.Namespace) -> None:
    """The loss of the faithful solution before and after the first step of AdamW, for each learning rate."""
    rates, rows = (1e-3, 1e-4, 1e-5, 1e-6), []
    for gap, name in itertools.product((GAP, 40.0), _names(given.programs, FAITHFUL)):
        dim = faithful_solution(task_of(*prepared(name, gap))).shape[1]
        kinds = itertools.product(rates, range(given.seeds or 8))
        part = Part("kick", name, 1, tuple(Run(dim, seed, 0, "faithful", rate) for rate, seed in kinds), gap)
        found = Training([part]).arrays()
        after = found["end"].sum(axis=1).reshape(len(rates), -1).tolist()
        rows.append({"program": name, "gap": gap, "before": found["curve"][0].tolist(), "rates": rates, "after": after})
        (given.out / "kick.json").write_text(json.dumps(rows) + "\n")
        print(name, gap, [float(np.median(one)) for one in after], flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_train = commands.add_parser("train")
    of_train.add_argument("study", nargs="+", choices=STUDY)
    of_train.add_argument("--gaps", nargs="*", type=float, default=[], help="only parts with these gaps")
    of_train.add_argument("--starts", nargs="*", default=[], help="only runs with these starts: faithful, None, 1.0")
    of_train.add_argument("--as-saved", action="store_true", help="end trainings where they were saved")
    of_train.add_argument("--together", action="store_true", help="parts of one program train in one compiled program")
    of_train.add_argument("--save", type=float, default=0.0, metavar="N", help="save the state every N seconds")
    for name in ("train", "measure", "fast", "lossless", "kick"):
        command = of_train if name == "train" else commands.add_parser(name)
        command.add_argument("out", type=Path)
        command.add_argument("--seeds", type=int)
        command.add_argument("--steps", type=int)
        command.add_argument("--seed", type=int, default=0, help="other starts and batches for all runs")
        command.add_argument("--programs", nargs="*", default=[])
        command.add_argument("--rates", nargs="*", type=float, default=[], help="only runs with these learning rates")
        command.add_argument("--dims", nargs="*", type=int, default=[], help="of paper and fast: only these dimensions")
        command.add_argument("--rounds", type=int, help="of fast: so many rounds, other than its default")
        command.add_argument("--watch", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    commands_by_name = {"train": train, "measure": measure, "fast": fast, "lossless": lossless, "kick": kick}
    return commands_by_name[given.command](given)


if __name__ == "__main__":
    main()
