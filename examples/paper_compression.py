"""Repeat the paper's section 5: compress frac_prevs and sort_unique with many seeds, and draw its figures.

    python examples/paper_compression.py                      our optimiser, which converges on a CPU: ten minutes
    python examples/paper_compression.py --seeds 5            the same with 5 seeds for each number of dimensions
    python examples/paper_compression.py --method sgd         the paper's recipe, 300,000 steps: use a GPU
    python examples/paper_compression.py --results FOLDER     from `compression_studies.py train paper FOLDER`

Needs `pip install 'tracr[jax,viz]'`. Figures and summary.json go to --output (a folder).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import tracr
from tracr.compress import figures
from tracr.compress.compressing import measured
from tracr.compress.model import CompressedModel, Training
from tracr.compress.objective import Objective
from tracr.compress.observing import measure
from tracr.compress.paper import STUDIES, study
from tracr.compress.projection import Projection, sites_of
from tracr.compress.sgd import Recipe, padded_starts, train
from tracr.compress.task import task_of

DIMS = {"frac_prevs": (2, 4, 5, 6, 8, 10, 14), "sort_unique": (4, 8, 12, 16, 20)}
SHOWN = {"frac_prevs": 8, "sort_unique": 12}


def main() -> None:
    """Train or read the runs, print the results, draw the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=("fast", "sgd"), default="fast", help="ours, or the paper's recipe (fast)")
    parser.add_argument("--steps", type=int, default=Recipe().steps, help="steps of sgd (300000); fewer give a warning")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each number of dimensions (1)")
    parser.add_argument("--gap", type=float, default=256.0, help="the logit gap of the heads (256)")
    parser.add_argument("--study", nargs="*", default=list(STUDIES), help=f"which programs ({' '.join(STUDIES)})")
    parser.add_argument("--results", type=Path, help="read the runs from this folder, train nothing")
    parser.add_argument(
        "--output", type=Path, default=Path("paper_compression"), help="folder of figures and summary.json"
    )
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    summary: dict[str, Any] = {}
    for name in given.study:
        model, inputs = study(name, given.gap)
        if given.results is None and given.method == "fast":
            runs, curves = searched(name, model, inputs, given.seeds)
        elif given.results is None:
            runs, curves = trained(name, model, inputs, given.steps, given.seeds)
        else:
            runs, curves = read(given.results / f"paper-{name}.npz", model, inputs)
        summary[name] = tell(name, model, runs, inputs)
        if given.results is None and given.method == "sgd" and given.steps < Recipe().steps:
            print(unfinished(given.steps, [run for run in runs if run.d_model == model.d_model], inputs))
        draw(name, model, inputs, runs, curves, given.output)
    (given.output / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")


Runs = list[CompressedModel]
Curves = dict[str, tuple[Any, Any]]


def trained(name: str, model: tracr.CompiledModel, inputs: Any, steps: int, seeds: int) -> tuple[Runs, Curves]:
    """Every dim and seed, in one compiled program."""
    task = task_of(model, inputs)
    objective = Objective(task, sites_of(task.network, "one"))
    grid = [(dim, seed) for dim in DIMS[name] for seed in range(seeds)]
    recipe = Recipe(steps=steps, chunk=max(1, steps // 50))
    found = train(
        objective,
        padded_starts(objective, grid),
        recipe,
        progress=lambda done, loss: print(
            f"\r{name}: {done:,} of {steps:,} steps, best loss {loss:.3g}", end="", flush=True
        ),
    )
    print()
    return _models(model, inputs, np.asarray(found.params["W"])[:, 0], grid), _curves(found.steps, found.curve, grid)


def searched(name: str, model: tracr.CompiledModel, inputs: Any, seeds: int) -> tuple[Runs, Curves]:
    """Every dim and seed with our optimiser."""
    runs = []
    for dim in DIMS[name]:
        for seed in range(seeds):
            runs.append(tracr.compress(model, dim, "fast", seed, inputs=inputs))
            print(f"{name}: {runs[-1]}", flush=True)
    curves = {f"d = {run.d_model}": (run.training.steps, run.training.curve) for run in runs}
    return runs, curves


def unfinished(steps: int, widest: Runs, inputs: Any) -> str:
    """A warning about runs with fewer steps than the paper's."""
    accuracy = np.median([measure(run, inputs)[0] for run in widest])
    return (
        f"WARNING: {steps:,} steps are too few: the paper's recipe has {Recipe().steps:,}, and without compression "
        f"(d = D) these runs are right at {accuracy:.1%} of the positions, where 100% is possible. The table shows "
        "unfinished training, not what d dimensions can hold. Use --steps 300000 on a GPU, or --method fast.\n"
    )


def read(path: Path, model: tracr.CompiledModel, inputs: Any) -> tuple[Runs, Curves]:
    """Read the runs of the study."""
    with np.load(path) as arrays:
        about = json.loads(str(arrays["about"]))
        W, curve = arrays["W"][:, 0], arrays["curve"]
    grid = [(run["dim"], run["seed"]) for run in about["runs"]]
    steps = np.linspace(0, about["steps"], len(curve) + 1)[1:]
    return _models(model, inputs, W, grid), _curves(steps, curve, grid)


def _models(model: tracr.CompiledModel, inputs: Any, W: Any, grid: list[tuple[int, int]]) -> Runs:
    task = task_of(model, inputs)
    sites = sites_of(task.network, "one")
    return [
        measured(model, task, Projection(np.asarray(w[None, :, :dim], dtype=np.float64), sites), Training("sgd", seed))
        for w, (dim, seed) in zip(W, grid, strict=True)
    ]


def _curves(steps: Any, curve: Any, grid: list[tuple[int, int]]) -> Curves:
    dims = sorted({dim for dim, _ in grid})
    thin = slice(None, None, max(1, len(steps) // 100))
    mine = {dim: [number for number, (d, _) in enumerate(grid) if d == dim] for dim in dims}
    return {f"d = {dim}": (steps[thin], curve[thin][:, mine[dim]]) for dim in dims}


def tell(name: str, model: tracr.CompiledModel, runs: Runs, inputs: Any) -> dict[str, Any]:
    """Print a table of medians and quartiles over seeds."""
    print(f"{name}, D = {model.d_model}, gap {model.options.gap:g}: median [quartiles] over seeds")
    print("   d  runs  loss                            output loss  accuracy  cosine")
    found: dict[str, Any] = {}
    for dim in sorted({run.d_model for run in runs}):
        mine = [run for run in runs if run.d_model == dim]
        losses = np.array([run.training.loss for run in mine])
        outputs = np.array([run.training.output_loss for run in mine])
        accuracy, cosine = np.array([measure(run, inputs) for run in mine]).T
        low, middle, high = np.quantile(losses, (0.25, 0.5, 0.75))
        print(
            f"{dim:4d} {len(mine):5d}  {middle:8.2g} [{low:8.2g}, {high:8.2g}]  best {losses.min():8.2g} "
            f" {np.median(outputs):8.2g}  {np.median(accuracy):7.1%}   {np.median(cosine):.3f}"
        )
        size = np.stack([np.diag(run.gram) for run in mine])
        found[str(dim)] = {
            "losses": losses.tolist(),
            "output_losses": outputs.tolist(),
            "accuracy": accuracy.tolist(),
            "cosine": cosine.tolist(),
            "read_back": dict(zip(model.residual.labels, np.median(size, axis=0).tolist(), strict=True)),
        }
    print(tracr.compress(model, method="exact", inputs=inputs))
    shown = best(runs, SHOWN[name])
    print(f"the best of {SHOWN[name]} dimensions:\n{shown.report(inputs)}\n")
    return found


def best(runs: Runs, dim: int) -> CompressedModel:
    """The run of that dim with the lowest loss."""
    return min((run for run in runs if run.d_model == dim), key=lambda run: run.training.loss)


def draw(name: str, model: tracr.CompiledModel, inputs: Any, runs: Runs, curves: Curves, folder: Path) -> None:
    """The paper's figures."""
    dim = SHOWN[name]
    losses = {d: [run.training.output_loss for run in runs if run.d_model == d] for d in {run.d_model for run in runs}}
    shown, pca = best(runs, dim), tracr.compress(model, dim, "pca", inputs=inputs)
    some = {label: curve for label, curve in curves.items() if int(label.split()[-1]) in DIMS[name]}
    drawn = {
        "training": figures.training_curves(some, title=f"{name}: loss during training"),
        "dims": figures.loss_by_dim(losses, title=f"{name}: output loss"),
        "heatmaps": figures.gram_heatmaps({f"{shown.training.method}, d = {dim}": shown, f"PCA, d = {dim}": pca}),
        "layers": figures.layer_output_maps(shown, inputs),
    }
    for what, figure in drawn.items():
        figure.savefig(folder / f"{name}-{what}.png", dpi=110)
    print(f"figures in {folder}")


if __name__ == "__main__":
    main()
