"""Measures the speed of the compression methods in one run, on a CPU or (--gpu) on a GPU.

    python benchmarks/compress.py --cpu OUT          CPU: (a) the paper's recipe as a plain loop, (b) sgd, (c) fast
    python benchmarks/compress.py --gpu OUT          GPU: run-steps per second with many runs in one program
    python benchmarks/compress.py --sweep OUT        run-steps per second that a sweep delivers, end to end
    python benchmarks/compress.py --digits OUT       GPU: training as it is, in full precision, and in TF32

OUT is a folder for JSON, which `benchmarks/compression_data.py` collects. `benchmarks/compression_studies.py` has the
runs of docs/compression.md.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).resolve().parent]
# Python has a package `compression` that JAX imports, and this file must not be taken for it.

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tracr.adapters.jax import NAMESPACE
from tracr.compress.fast import FastRecipe, fast
from tracr.compress.objective import Objective
from tracr.compress.paper import study
from tracr.compress.projection import sites_of
from tracr.compress.sgd import Recipe, optimiser, padded_starts, starts, train
from tracr.compress.sweep import sweep
from tracr.compress.task import task_of
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.runtime.forward import forward

CASES = {("frac_prevs", 6): 2.1e-5, ("frac_prevs", 8): 2.9e-7, ("sort_unique", 12): 0.61}
"""The loss that the recipe reaches: the median of 96 runs after all 300,000 steps, rounded (docs/compression.md)."""


# (a) the paper's recipe, plainly


def now() -> Any:
    """Wall time and processor time in seconds; on a busy machine, processor time is more reliable."""
    return np.array([time.perf_counter(), time.process_time()])


def plain_loop(name: str, dim: int, steps: int, recipe: Recipe) -> Any:
    """Seconds (see `now`) per step, over `steps` steps of a schedule of `recipe.steps`.

    One jitted step on a batch, called in a Python loop: the compiled model's forward pass with Wᵀ before every read
    and W after every write.
    """
    model, inputs = study(name)
    task = task_of(model, inputs)
    parameters = model.parameters.map(lambda array: jnp.asarray(array, dtype=jnp.float32))
    hooks = [
        part.name.replace(".attn", ".hook_attn_out").replace(".mlp", ".hook_mlp_out") for part in task.network.parts
    ]

    def run(W: Any, ids: Any) -> Any:
        seen: dict[str, Any] = {}
        logits = forward(
            _projected(parameters, W @ W.T), ids, NAMESPACE, causal=model.options.causal, hook=seen.__setitem__
        )
        return [seen[hook] for hook in hooks], logits

    def loss(W: Any, batch: Any) -> Any:
        outs, logits = run(W, jnp.asarray(task.ids)[batch])
        total = 0.0
        for part, out, target in zip(task.network.parts, outs, task.targets, strict=True):
            total += ((out[..., part.dims] - jnp.asarray(target, dtype=jnp.float32)[batch]) ** 2).sum(axis=-1).mean()
        for output in task.outputs:
            mine, wanted = logits[:, 1:, output.start : output.stop], jnp.asarray(output.wanted)[batch][:, 1:]
            if output.categorical:
                total += optax.softmax_cross_entropy_with_integer_labels(mine, wanted).mean()
            else:
                total += ((mine - wanted) ** 2).sum(axis=-1).mean()
        return total

    update = optimiser(recipe)

    @jax.jit  # type: ignore[untyped-decorator]
    def step(W: Any, state: Any, batch: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(W, batch)
        change, state = update.update(slope, state, W)
        return optax.apply_updates(W, change), state, value

    rng = np.random.default_rng(0)
    W = jnp.asarray(rng.normal(scale=task.network.width**-0.5, size=(task.network.width, dim)), dtype=jnp.float32)
    state = update.init(W)
    step(W, state, jnp.zeros(recipe.batch, dtype=jnp.int32))[2].block_until_ready()
    start = now()
    for _ in range(steps):
        W, state, value = step(W, state, rng.integers(len(task), size=recipe.batch))
    value.block_until_ready()
    return (now() - start) / steps


def _projected(parameters: Parameters, G: Any) -> Parameters:
    """Every read goes through G."""
    reads = ("W_Q", "W_K", "W_V", "W_in")
    layers = []
    for layer in parameters.layers:
        weights = vars(layer)
        layers.append(LayerParameters(**{name: G @ w if name in reads else w for name, w in weights.items()}))
    return Parameters(parameters.W_E, parameters.W_pos, tuple(layers), G @ parameters.W_U)


# CPU


def on_cpu(folder: Path, steps: int, seeds: int) -> None:
    """Compare (a), (b) and (c). (a)'s full time is its time per step times the recipe's steps, without compilation.

    Seed 0 of (c) is run twice: JAX keeps the compiled code of the first run on disk for the second. Then every seed is
    run without a loss to reach.
    """
    with tempfile.TemporaryDirectory() as cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        cases: list[dict[str, Any]] = []
        for name, dim in CASES:
            cases.append({"program": name, "dim": dim})
            for _ in _compared(cases[-1], CASES[name, dim], steps, seeds):
                _write(folder / "speed.json", {"recipe_steps": Recipe().steps, "loop_steps": steps, "cases": cases})


def _compared(case: dict[str, Any], reached: float, steps: int, seeds: int) -> Iterator[None]:
    """Measure a case, one thing after the other."""
    name, dim = case["program"], case["dim"]
    model, inputs = study(name)
    task = task_of(model, inputs)
    objective = Objective(task, sites_of(task.network, "one"))
    case |= {"reached": reached, "plain": plain_loop(name, dim, steps, Recipe()).tolist()}
    case["sgd"] = sgd_rate(objective, dim, 1, 2000)
    print(f"{name}, d = {dim}: (a) {1 / case['plain'][0]:,.0f} steps/s, (b) {case['sgd']:,.0f} steps/s", flush=True)
    runs = [("with compilation", 0, reached), ("compiled before", 0, reached)]
    runs += [("other seeds, compiled before", seed, reached) for seed in range(1, seeds)]
    runs += [("without a loss to reach", seed, FastRecipe().enough) for seed in range(seeds)]
    for what, seed, enough in runs:
        start = now()
        found = fast(objective, dim, seed, FastRecipe(enough=enough), model.options.gap)
        wall, busy = now() - start
        row = {"seed": seed, "loss": float(found.losses[0]), "wall": wall, "processor": busy}
        case.setdefault(what, []).append(row)
        print(f"  (c) seed {seed}, {what}: {row['loss']:.2g} in {wall:.1f} s", flush=True)
        yield


def sgd_rate(objective: Objective, dim: int, runs: int, steps: int) -> float:
    """Run-steps per second of `train`, without compilation."""
    params = starts(objective, dim, list(range(runs)), None, False)
    moments: list[float] = []
    train(
        objective, params, Recipe(steps=3 * steps, chunk=steps), progress=lambda *_: moments.append(time.perf_counter())
    )
    return 2 * runs * steps / (moments[-1] - moments[0])


# GPU


def on_gpu(folder: Path, runs: list[int], steps: int) -> None:
    """Run-steps per second for frac_prevs, d = 6, batch 256."""
    model, inputs = study("frac_prevs")
    task = task_of(model, inputs)
    results = []
    objective = Objective(task, sites_of(task.network, "one"))
    for count in runs:
        rate = sgd_rate(objective, 6, count, steps)
        results.append({"runs": count, "run_steps_per_second": rate})
        print(f"{count:>7,} runs in one program: {rate:>12,.0f} run-steps/s", flush=True)
        _write(folder / "gpu.json", {"device": str(jax.devices()[0]), "results": results})


def on_digits(folder: Path, runs: int, steps: int) -> None:
    """The losses of the same runs, frac_prevs at d = 8, trained as sweeps do, with full precision set for all of JAX,
    and with full precision set nowhere."""
    model, inputs = study("frac_prevs")
    task = task_of(model, inputs)
    found: dict[str, Any] = {"device": str(jax.devices()[0]), "runs": runs, "steps": steps}
    for arm, objective, setting in (
        ("as shipped", Objective, None),
        ("highest everywhere", Objective, "highest"),
        ("no precision asked for", _FewDigits, None),
    ):
        jax.config.update("jax_default_matmul_precision", setting)
        one = objective(task, sites_of(task.network, "one"))
        W = train(one, padded_starts(one, [(8, seed) for seed in range(runs)]), Recipe(steps=steps)).params
        jax.config.update("jax_default_matmul_precision", "highest")
        plain = Objective(task, sites_of(task.network, "one"))
        found[arm] = np.asarray(jax.jit(jax.vmap(plain.loss))(W)).tolist()
        print(f"{arm}: median loss {np.median(found[arm]):.3g}", flush=True)
        _write(folder / "digits.json", found)


class _FewDigits(Objective):
    def full_precision(self) -> Any:
        return contextlib.nullcontext()


class _JsonStore:
    """Stands in for the store of sweeps where pyarrow is missing."""

    def __init__(self, folder: Any, *_: Any) -> None:
        self.path, self.kept = Path(folder) / "results.json", []  # type: tuple[Path, list[Any]]

    def done(self, retry: Any = ()) -> set[Any]:
        return set()

    def add(self, rows: list[Any]) -> None:
        self.kept += rows

    def rows(self) -> list[Any]:
        return self.kept

    def finish(self) -> Path:
        _write(self.path, self.kept)
        return self.path


def on_sweep(folder: Path, runs: int, steps: int) -> None:
    """A sweep over frac_prevs, d = 6, from the call to the written results, against the training alone."""
    written = "Parquet"
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        written = "JSON"
        vars(sys.modules["tracr.compress.sweep"])["Store"] = _JsonStore
    model, inputs = study("frac_prevs")
    task = task_of(model, inputs)
    alone = sgd_rate(Objective(task, sites_of(task.network, "one")), 6, runs, 500)
    with tempfile.TemporaryDirectory() as aside:
        start = time.perf_counter()
        chosen = {"f": model}, [6], range(runs), aside
        sweep(*chosen, recipe=Recipe(steps=steps), inputs={"f": inputs}, group=runs)
        seconds = time.perf_counter() - start
    rate = runs * steps / seconds
    print(f"{runs:,} runs of {steps:,} steps: {rate:,.0f} run-steps/s end to end, {rate / alone:.0%} of {alone:,.0f}")
    data = {"runs": runs, "steps": steps, "seconds": seconds, "end_to_end": rate, "training": alone, "written": written}
    _write(folder / "sweep.json", {"device": str(jax.devices()[0]), **data})


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", type=Path, metavar="OUT")
    parser.add_argument("--gpu", type=Path, metavar="OUT")
    parser.add_argument("--sweep", type=Path, metavar="OUT")
    parser.add_argument("--digits", type=Path, metavar="OUT")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--loop-steps", type=int, default=3000, help="steps of (a) that are timed")
    parser.add_argument("--seeds", type=int, default=4, help="of fast, for --cpu")
    parser.add_argument("--runs", nargs="*", type=int, default=[256, 1024, 4096, 16384])
    given = parser.parse_args()
    if jax.default_backend() == "gpu":
        jax.config.update("jax_default_matmul_precision", "highest")  # TF32 has too few digits for sharp attention
    for folder in (given.cpu, given.gpu, given.sweep, given.digits):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    if given.gpu is not None:
        on_gpu(given.gpu, given.runs, 200)
    if given.sweep is not None:
        on_sweep(given.sweep, given.runs[0], given.steps)
    if given.digits is not None:
        on_digits(given.digits, given.runs[0], given.steps)
    if given.cpu is not None:
        on_cpu(given.cpu, given.loop_steps, given.seeds)


if __name__ == "__main__":
    main()
