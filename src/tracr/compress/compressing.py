"""`compress`: compresses a compiled model into fewer dimensions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tracr.arguments import flag, number, one_of, whole
from tracr.compress.closed import pca_projection
from tracr.compress.fast import FastRecipe, fast
from tracr.compress.lossless import lossless
from tracr.compress.model import CompressedModel, Training, compressed_model
from tracr.compress.objective import Objective, Params
from tracr.compress.projection import SHARING, Projection, sites_of
from tracr.compress.readings import readings
from tracr.compress.sgd import Recipe, starts, train
from tracr.compress.task import Task, require_labelled, task_of
from tracr.errors import TracrError
from tracr.extras import need
from tracr.model.designed import DesignedModel
from tracr.values import Value

__all__ = ["MEASURED", "METHODS", "compress", "measured", "unchanged"]

METHODS = ("fast", "sgd", "pca", "exact")
MEASURED = 1000  # inputs on which the losses of a projection without loss are measured, if all are too many
ROUNDING = 1e-12  # the largest layer loss of a projection without loss
Progress = Callable[[str, int, float], None]


def compress(
    model: DesignedModel,
    dim: int | None = None,
    method: str = "fast",
    seed: int = 0,
    *,
    inputs: Sequence[Sequence[Value]] | None = None,
    sharing: str = "one",
    train_weights: bool = False,
    output_weight: float = 1.0,
    layer_weight: float = 1.0,
    recipe: Recipe | FastRecipe | None = None,
    init_scale: float | None = None,
    progress: bool | Progress = False,
) -> CompressedModel:
    """Compress a model's residual stream to `dim` dimensions.

    Every sub-layer writes to the stream through a matrix W [D, dim] and reads it through Wᵀ; the other weights stay. W
    is trained to keep the outputs (cross-entropy or squared error) and the writes of each sub-layer (squared error).

    Args:
        model: a model returned by `tracr.compile`. The paper's models are those of level 0.
        dim: the number of dimensions, from 1 to the model's own; may be left out for `method="exact"`.
        method: "fast", our optimiser; "sgd", the paper's recipe (AdamW, 300,000 steps); "pca", the paper's baseline;
            "exact", a projection without loss, proved for every input the model takes (or for `inputs`, if given): in
            closed form, or in fewer dimensions by a search (`exact_dims`); refused where it finds none.
        seed: the seed of the random starts. The same seed gives the same model.
        inputs: the training inputs; by default every input, or a sample of 20,000 if there are more. With "exact" only
            these inputs are kept.
        sharing: "one" W for all; "layer", one W per layer; "read-write", one W for reads and one for writes.
        train_weights: also train the sub-layers' own weights.
        output_weight, layer_weight: the weights of the two parts of the loss.
        recipe: a `Recipe` for "sgd" or a `FastRecipe` for "fast", to change steps, batch, learning rate, starts.
        init_scale: the standard deviation of the random start; the default for "sgd" is 1/√D.
        progress: True shows a progress bar; a function is called with (stage, steps done, loss).

    Ctrl-C stops the training and keeps the best result so far.
    """
    _check(model, dim, method, sharing, seed)
    flag("train_weights", train_weights)
    output_weight = number("output_weight", output_weight, low=0)
    layer_weight = number("layer_weight", layer_weight, low=0)
    init_scale = None if init_scale is None else number("init_scale", init_scale, low=0)
    if method == "exact" or dim is None:
        return _exact(model, inputs, dim)
    task = task_of(model, inputs)
    dim = operator.index(dim)
    sites = sites_of(task.network, sharing)
    if method == "pca":
        projection = Projection(np.repeat(pca_projection(task, dim)[None], sites.count, axis=0), sites)
        return measured(model, task, projection, Training("pca"), output_weight, layer_weight)
    objective = Objective(task, sites, output_weight=output_weight, layer_weight=layer_weight)
    with _reporting(progress, method, recipe) as tell:
        if method == "sgd":
            params, training = _sgd(objective, dim, seed, _as(recipe, Recipe), init_scale, train_weights, tell)
        else:
            chosen = _as(recipe, FastRecipe)
            chosen = chosen if init_scale is None else replace(chosen, scale=init_scale)
            params, training = _fast(objective, dim, seed, chosen, model.options.gap, train_weights, tell)
    projection = Projection(np.asarray(params["W"], dtype=np.float64), sites)
    if not np.isfinite(projection.matrices).all():
        raise TracrError(
            f"the training of {dim} dimensions diverged: weights are no longer numbers",
            hint="lower the learning rate (recipe=...), or start smaller (init_scale=0.1)",
        )
    return measured(model, task, projection, training, output_weight, layer_weight, objective, params)


def _check(model: DesignedModel, dim: int | None, method: str, sharing: str, seed: int) -> None:
    require_labelled(model, "compressed")
    one_of("method", method, METHODS)
    if not isinstance(sharing, str) or sharing not in SHARING:
        raise TracrError(f"there is no projection {sharing!r}", hint=f"there are {', '.join(SHARING)}")
    whole("seed", seed)
    if method == "exact" and dim is None:
        return
    whole("dim", dim, 1, most=model.d_model)


def _exact(model: DesignedModel, inputs: Sequence[Sequence[Value]] | None, dim: int | None) -> CompressedModel:
    W = lossless(readings(model, inputs), dim)
    task = task_of(model, inputs, MEASURED)
    return unchanged(measured(model, task, Projection(W[None], sites_of(task.network, "one")), Training("exact")))


def unchanged(made: CompressedModel) -> CompressedModel:
    """The model, or an error if rounding changes the writes of sub-layers although all reads are exact."""
    if not made.training.layer_loss < ROUNDING:
        raise TracrError(
            f"the model cannot be compressed without loss: rounding changes its writes (layer loss "
            f"{made.training.layer_loss:.1g})",
            hint="use method='fast' to lose as little as possible",
        )
    return made


def _as(recipe: Any, kind: type[Any]) -> Any:
    if recipe is None:
        return kind()
    if not isinstance(recipe, kind):
        raise TracrError(
            f"this method takes a {kind.__name__}, not a {type(recipe).__name__}", hint=f"write {kind.__name__}(...)"
        )
    return recipe


def _sgd(
    objective: Objective, dim: int, seed: int, recipe: Recipe, scale: float | None, train_weights: bool, tell: Progress
) -> tuple[Params, Training]:
    params = starts(objective, dim, [seed], scale, train_weights)
    found = train(objective, params, recipe, progress=lambda done, loss: tell("sgd", done, loss))
    curve, steps = found.curve[:, 0].tolist(), found.steps.tolist()
    training = Training(
        "sgd",
        seed,
        starts=(float(found.losses[0]),),
        steps=tuple(steps),
        curve=tuple(curve),
        interrupted=found.interrupted,
    )
    return found.run(0), training


def _fast(
    objective: Objective, dim: int, seed: int, recipe: FastRecipe, gap: float, train_weights: bool, tell: Progress
) -> tuple[Params, Training]:
    found = fast(objective, dim, seed, recipe, gap, train_weights, tell)
    if not len(found.losses):
        raise KeyboardInterrupt
    training = Training(
        "fast",
        seed,
        starts=tuple(sorted(found.started.tolist())),
        steps=tuple(found.times.tolist()),
        curve=tuple(found.curve.tolist()),
        interrupted=found.interrupted,
    )
    return objective.jax.tree.map(lambda array: array[0], found.params), training


def measured(
    model: DesignedModel,
    task: Task,
    projection: Projection,
    training: Training,
    output_weight: float = 1.0,
    layer_weight: float = 1.0,
    objective: Objective | None = None,
    params: Params | None = None,
) -> CompressedModel:
    """The compressed model, with its losses measured on the inputs of the task in float64."""
    from tracr.compress.observing import measured_losses

    network = task.network if objective is None or params is None else objective.trained(params)
    made = compressed_model(model, network, projection, training)
    output, layers, floor = measured_losses(made, task, network)
    loss = output_weight * output + layer_weight * layers
    return replace(
        made,
        training=replace(
            training, loss=loss, output_loss=output, layer_loss=layers, compiled_loss=output_weight * floor
        ),
    )


class _reporting:
    """Reports progress: with a bar, to the user's function, or not at all."""

    def __init__(self, progress: bool | Progress, method: str, recipe: Any) -> None:
        self._progress = progress
        self._bar: Any = None
        chosen = _as(recipe, Recipe if method == "sgd" else FastRecipe)
        self._totals = {"shrink": chosen.shrink, "polish": chosen.polish} if method == "fast" else {}
        self._steps = chosen.steps

    def __enter__(self) -> Progress:
        if callable(self._progress):
            return self._progress
        if not self._progress:
            return lambda stage, done, loss: None
        bar = self._bar = need("tqdm").tqdm(total=self._steps, unit="step", leave=False, disable=None)

        def tell(stage: str, done: int, loss: float) -> None:
            if done < bar.n:
                bar.reset()
            bar.total = self._totals.get(stage, self._steps)
            bar.set_postfix(stage=stage, loss=f"{loss:.3g}", refresh=False)
            bar.update(done - bar.n)

        return tell

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
