"""Studies of compression by training: many runs, their data, and tables computed from the data.

    python benchmarks/compression_studies.py paper OUT       the paper's recipe: all dims, 3 reruns of 32 seeds
    python benchmarks/compression_studies.py settings OUT    gap × start × decay at d = 6 and 8, the same steps for all
    python benchmarks/compression_studies.py faithful OUT    does the optimiser leave a faithful solution?
    python benchmarks/compression_studies.py cost OUT        loss, accuracy and causal slopes against D/d, 20 programs
    python benchmarks/compression_studies.py tables OUT      the tables of all studies in OUT, from their data

OUT gets one JSON file per part of a study. A part that is there is not repeated, so a stopped study can be started
again. `--steps` and `--seeds` make a study smaller, `--programs` and `--parts` limit it. Needs numpy, jax and optax.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
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
from tracr.compress.measuring import Measuring
from tracr.compress.objective import Objective
from tracr.compress.paper import STUDIES, study
from tracr.compress.projection import sites_of
from tracr.compress.readings import seen
from tracr.compress.sgd import Recipe
from tracr.compress.task import all_inputs, task_of
from tracr.rasp import programs as library

PROGRAMS = ("frac_prevs", "sort_unique", "hist", "reverse", "has_prev")
"""The programs of `faithful`."""
INPUTS = 1024  # most training inputs of a program of the library


@dataclass(frozen=True)
class Run:
    """A run: its start (a standard deviation, or "exact": the closed form without loss), and how it is trained."""

    dim: int
    seed: int
    start: float | str | None = None
    rate: float = 1e-3
    decay: float = 0.1


@dataclass(frozen=True)
class Part:
    """A part of a study: runs of one program that train together, in one file."""

    study: str
    program: str
    gap: float
    runs: tuple[Run, ...]
    rerun: int = 0

    @property
    def file(self) -> str:
        """The name of the file of its results."""
        return f"{self.study}-{self.program}-gap{self.gap:g}-{self.rerun}.json"


def prepared(program: str, gap: float) -> tuple[tracr.CompiledModel, Any]:
    """A case study of the paper, or a program of the library at level 0 with up to `INPUTS` inputs."""
    if program in STUDIES:
        return study(program, gap)
    example = library.EXAMPLES[program]
    vocab = example.vocab[:4]
    model = tracr.compile(example.program, vocab, 5, level=0, gap=gap)
    every = all_inputs(model, lengths=[4])
    order = np.random.default_rng(0).permutation(len(every))[:INPUTS]
    return model, [every[place] for place in sorted(order)]


# Training: every run with its own learning rate and weight decay


def trained(objective: Objective, params: Any, runs: Iterable[Run], steps: int, seed: int) -> Any:
    """The matrices after the paper's recipe, with a learning rate and a weight decay for each run."""
    recipe, task = Recipe(steps=steps), objective.task
    runs = list(runs)
    rate, decay = (jnp.asarray([getattr(run, name) for run in runs], dtype=jnp.float32) for name in ("rate", "decay"))
    moments = optax.scale_by_adam(b1=recipe.b1, b2=recipe.b2)
    fall = optax.linear_schedule(1.0, recipe.final_rate / recipe.learning_rate, max(1, steps // 2))
    gradient = jax.vmap(jax.grad(objective.loss), (0, None))
    shape = (-1, 1, 1, 1)

    def step(carry: Any, given: Any) -> Any:
        params, state = carry
        number, batch = given
        change, state = moments.update(gradient(params, batch), state)
        size = (rate * fall(number)).reshape(shape)
        W = params["W"]
        return ({"W": W - size * (change["W"] + decay.reshape(shape) * W)}, state), None

    def chunk(params: Any, state: Any, start: Any, size: int) -> Any:
        key = jax.random.fold_in(jax.random.key(seed), start)
        few = len(task) <= recipe.batch
        batches = None if few else jax.random.randint(key, (size, recipe.batch), 0, len(task))
        (params, state), _ = jax.lax.scan(step, (params, state), (start + jnp.arange(size), batches))
        return params, state

    run = jax.jit(chunk, static_argnums=3)
    state = moments.init(params)
    for start in range(0, steps, recipe.chunk):
        params, state = run(params, state, start, min(recipe.chunk, steps - start))
    return np.asarray(params["W"])


def starts_of(objective: Objective, runs: Iterable[Run], rerun: int) -> Any:
    """The first matrices [run, 1, D, widest], with zero columns beyond a run's dims."""
    runs, width = list(runs), objective.task.network.width
    exact = exact_projection(seen(objective.task))
    W = np.zeros((len(runs), 1, width, max(run.dim for run in runs)), dtype=np.float32)
    for number, run in enumerate(runs):
        rng = np.random.default_rng([run.seed, rerun])
        if run.start == "exact":
            turn = np.linalg.qr(rng.normal(size=(run.dim, run.dim)))[0][: exact.shape[1]]
            W[number, 0, :, : run.dim] = exact[:, : run.dim] @ turn
        else:
            scale = width**-0.5 if run.start is None else float(run.start)
            W[number, 0, :, : run.dim] = rng.normal(scale=scale, size=(width, run.dim))
    return {"W": jnp.asarray(W)}


def done(part: Part, steps: int) -> dict[str, Any]:
    """Train and measure a part: a row for every run."""
    begin = time.perf_counter()
    model, inputs = prepared(part.program, part.gap)
    task = task_of(model, inputs)
    sites = sites_of(task.network, "one")
    objective = Objective(task, sites)
    W = trained(objective, starts_of(objective, part.runs, part.rerun), part.runs, steps, part.rerun)
    seconds = time.perf_counter() - begin
    measuring = Measuring(model, task, sites)
    slopes = measuring.slopes(W)
    rows = [
        {
            **asdict(run),
            "loss": found.output_loss + found.layer_loss,
            "output_loss": found.output_loss,
            "accuracy": found.accuracy,
            "cosine": found.cosine,
            "cosines": dict(zip([one.name for one in task.network.parts], found.cosines, strict=True)),
            "slopes": {name: float(values[number]) for name, values in slopes.items()},
            "read_back": np.round((W[number, 0].astype(float) ** 2).sum(axis=1), 4).tolist(),
        }
        for number, (run, found) in enumerate(zip(part.runs, measuring(W), strict=True))
    ]
    whole = time.perf_counter() - begin
    return {
        "study": part.study,
        "program": part.program,
        "gap": part.gap,
        "rerun": part.rerun,
        "steps": steps,
        "inputs": len(task),
        "width": model.d_model,
        "labels": model.residual.labels,
        "device": str(jax.devices()[0]),
        "seconds": round(whole, 1),
        "training_seconds": round(seconds, 1),
        "runs": rows,
    }


# The studies


def paper(seeds: int, names: list[str]) -> Iterator[Part]:
    """Every dim of the paper's two programs; three reruns with other starts and other batches."""
    for rerun, name in itertools.product(range(3), names or STUDIES):
        width = study(name)[0].d_model
        dims = range(2, width + 1) if width < 16 else range(4, width + 1, 2)
        yield Part("paper", name, 256.0, tuple(Run(dim, seed) for dim in dims for seed in range(seeds)), rerun)


def settings(seeds: int, names: list[str]) -> Iterator[Part]:
    """Gap, scale of the start and weight decay, one at a time and together; all with the same number of steps."""
    choices = list(itertools.product((None, 1.0), (0.1, 0.0), range(seeds)))
    for rerun, name, gap in itertools.product(range(3), names or STUDIES, (256.0, 100.0, 40.0)):
        dims = (6, 8) if name == "frac_prevs" else (8, 12)
        runs = tuple(Run(dim, seed, start, decay=decay) for dim in dims for start, decay, seed in choices)
        yield Part("settings", name, gap, runs, rerun)


def faithful(seeds: int, names: list[str]) -> Iterator[Part]:
    """Starts {1/√D, 1, the closed form without loss} × learning rate × decay, with the dims of the closed form."""
    choices = list(itertools.product((None, 1.0, "exact"), (1e-3, 1e-4), (0.1, 0.01, 0.0), range(seeds)))
    for name, gap in itertools.product(names or PROGRAMS, (256.0, 40.0)):
        model, inputs = prepared(name, gap)
        dim = exact_projection(seen(task_of(model, inputs))).shape[1]
        yield Part(
            "faithful", name, gap, tuple(Run(dim, seed, start, rate, decay) for start, rate, decay, seed in choices)
        )


def cost(seeds: int, names: list[str]) -> Iterator[Part]:
    """Twenty programs at nine ratios D/d."""
    for name in names or [name for name in library.EXAMPLES if name not in ("dyck2", "closer", "induction")][:20]:
        width = prepared(name, 256.0)[0].d_model
        dims = sorted({max(1, round(width / ratio)) for ratio in (1, 1.15, 1.3, 1.5, 1.75, 2, 2.5, 3, 4)})
        yield Part("cost", name, 256.0, tuple(Run(dim, seed) for dim in dims for seed in range(seeds)))


STUDY = {"paper": paper, "settings": settings, "faithful": faithful, "cost": cost}
SEEDS = {"paper": 32, "settings": 32, "faithful": 32, "cost": 8}
STEPS = {"paper": 300_000, "settings": 300_000, "faithful": 100_000, "cost": 100_000}


# Tables


def interval(values: Any, groups: Any, draws: int = 2000) -> tuple[float, float, float]:
    """The median and a bootstrap interval (95 %): reruns are drawn, and runs within each."""
    values, groups = np.asarray(values, dtype=float), np.asarray(groups)
    rng = np.random.default_rng(0)
    parts = [values[groups == group] for group in np.unique(groups)]
    medians = []
    for _ in range(draws):
        chosen = [parts[number] for number in rng.integers(len(parts), size=len(parts))]
        medians.append(np.median(np.concatenate([part[rng.integers(len(part), size=len(part))] for part in chosen])))
    low, high = np.quantile(medians, (0.025, 0.975))
    return float(np.median(values)), float(low), float(high)


def tables(folder: Path) -> None:
    """Print a table for every program and study: medians with their intervals."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    keys = sorted({(part["study"], part["program"], part["gap"], part["steps"]) for part in found})
    for key in keys:
        mine = [part for part in found if (part["study"], part["program"], part["gap"], part["steps"]) == key]
        rows = [(part["rerun"], run) for part in mine for run in part["runs"]]
        print(f"\n{key[0]}: {key[1]}, D = {mine[0]['width']}, gap {key[2]:g}, {key[3]:,} steps, {len(mine)} reruns")
        print("| d | start | rate | decay | runs | loss | accuracy | cosine | causal slopes |\n" + "|---" * 9 + "|")
        kinds = sorted({(r["dim"], str(r["start"]), r["rate"], r["decay"]) for _, r in rows})
        for kind in kinds:
            some = [(n, r) for n, r in rows if (r["dim"], str(r["start"]), r["rate"], r["decay"]) == kind]
            print(_line(kind, some))


def _line(kind: tuple[Any, ...], some: list[tuple[int, Any]]) -> str:
    reruns = [number for number, _ in some]

    def shown(values: Any, form: str) -> str:
        middle, low, high = interval(values, reruns)
        return f"{middle:{form}} [{low:{form}}, {high:{form}}]"

    slopes = ", ".join(
        f"{name} {shown([run['slopes'][name] for _, run in some], '.2f')}" for name in some[0][1]["slopes"]
    )
    start = "1/√D" if kind[1] == "None" else kind[1]
    cells = [
        kind[0], start, f"{kind[2]:g}", f"{kind[3]:g}", len(some),
        shown([run["loss"] for _, run in some], ".2g"),
        shown([run["accuracy"] for _, run in some], ".1%"),
        shown([run["cosine"] for _, run in some], ".2f"),
        slopes,
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=[*STUDY, "tables"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--programs", nargs="*", default=[])
    parser.add_argument("--parts", type=int, help="do at most so many parts in this call")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.study == "tables":
        return tables(given.out)
    steps = STEPS[given.study] if given.steps is None else given.steps
    seeds = SEEDS[given.study] if given.seeds is None else given.seeds
    parts = [part for part in STUDY[given.study](seeds, given.programs) if not (given.out / part.file).exists()]
    for number, part in enumerate(parts[: given.parts]):
        result = done(part, steps)
        aside = given.out / f"{part.file}.part"
        aside.write_text(json.dumps(result) + "\n")
        aside.rename(given.out / part.file)
        rate = len(part.runs) * steps / result["training_seconds"]
        print(f"{number + 1} of {len(parts)}: {part.file}, {len(part.runs)} runs, {result['seconds']} s, "
              f"{rate:,.0f} run-steps/s", flush=True)  # fmt: skip
    return None


if __name__ == "__main__":
    main()
