"""The figures of the paper's section 5, as matplotlib Figures (extra `viz`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.model import CompressedModel
from tracr.compress.observing import layer_outputs
from tracr.extras import need
from tracr.values import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["gram_heatmaps", "layer_output_maps", "loss_by_dim", "overview", "training_curves"]

Array = NDArray[Any]


def _figure(width: float, height: float) -> Figure:
    need("matplotlib", "viz")
    from tracr.viz.canvas import InlineFigure

    made = InlineFigure(figsize=(width, height), layout="constrained")
    return made


def training_curves(curves: Mapping[str, tuple[Sequence[float], Any]], *, title: str = "") -> Figure:
    """Draw the loss during training, one line per name: (steps, losses); several runs as median and quartiles."""
    figure = _figure(5.5, 3.6)
    axes = figure.subplots()
    colours = need("matplotlib", "viz").colormaps["viridis"](np.linspace(0, 0.9, max(1, len(curves))))
    for (name, (steps, losses)), colour in zip(curves.items(), colours, strict=True):
        runs = np.asarray(losses).reshape(len(steps), -1)
        low, middle, high = np.nanquantile(runs, (0.25, 0.5, 0.75), axis=1)
        axes.plot(steps, middle, color=colour, label=name, linewidth=1.4)
        if runs.shape[1] > 1:
            axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel="step", ylabel="loss", yscale="log", title=title)
    axes.legend(fontsize=7, ncols=2 if len(curves) > 5 else 1, frameon=False)
    return figure


def loss_by_dim(losses: Mapping[int, Sequence[float]], *, floor: float | None = None, title: str = "") -> Figure:
    """Draw final losses against d: every run as a dot, the median as a line; `floor` is the compiled model's loss."""
    figure = _figure(5.5, 3.6)
    axes = figure.subplots()
    dims = sorted(losses)
    smallest = min((value for runs in losses.values() for value in runs if value > 0), default=1e-12)
    for dim in dims:
        values = np.maximum(losses[dim], smallest)
        axes.scatter(np.full(len(values), dim), values, s=9, color="C0", alpha=0.35, linewidths=0)
    axes.plot(dims, [max(float(np.median(losses[dim])), smallest) for dim in dims], color="C0", label="median")
    axes.plot(dims, [max(min(losses[dim]), smallest) for dim in dims], color="C0", ls=":", label="best")
    if floor is not None and floor > 0:
        axes.axhline(floor, color="C3", linewidth=1, label="compiled model")
    axes.set(xlabel="dimensions d", ylabel="loss", yscale="log", title=title, xticks=dims)
    axes.legend(fontsize=8, frameon=False)
    return figure


def gram_heatmaps(models: Mapping[str, CompressedModel], *, title: str = "") -> Figure:
    """Draw W Wᵀ with the features' labels, one panel per model. 1 on the diagonal is a kept feature, 0 a dropped one;
    entries off the diagonal are shared dimensions. (The paper's W is d × D, so it writes WᵀW.)"""
    size = 1.5 + 0.21 * max(len(model.labels) for model in models.values())
    figure = _figure(size * len(models) + 0.6, size)
    panels = figure.subplots(1, len(models), squeeze=False)[0]
    image: Any = None
    for axes, (name, model) in zip(panels, models.items(), strict=True):
        image = axes.imshow(model.gram, cmap="RdBu_r", vmin=-1, vmax=1)
        places = range(len(model.labels))
        axes.set_xticks(places, model.labels, rotation=90, fontsize=7)
        axes.set_yticks(places, model.labels, fontsize=7)
        axes.set_title(name, fontsize=9)
    figure.colorbar(image, ax=list(panels), shrink=0.7)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def layer_output_maps(model: CompressedModel, inputs: Sequence[Sequence[Value]] | None = None) -> Figure:
    """Draw the writes of each sub-layer, averaged over inputs: compiled, compressed, and the squared difference."""
    found = layer_outputs(model, inputs)
    labels = model.labels
    titles = ("compiled", "compressed", "squared difference")
    columns = {title: {name: means[place] for name, means in found.items()} for place, title in enumerate(titles)}
    height = 1.2 + 0.17 * len(labels)
    figure = _figure(3.1 * len(columns) + 1.0, height)
    panels = figure.subplots(1, len(columns), sharey=True)
    largest = max(float(np.abs(array).max(initial=0.0)) for means in found.values() for array in means[:2])
    image: Any = None
    for axes, (name, layers) in zip(panels, columns.items(), strict=True):
        wide = np.concatenate([array.T for array in layers.values()], axis=1)
        image = axes.imshow(wide, aspect="auto", cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="none")
        sizes = [len(array) for array in layers.values()]
        ends = np.cumsum(sizes)
        for end in ends[:-1]:
            axes.axvline(end - 0.5, color="black", linewidth=0.8)
        axes.set_xticks(ends - np.array(sizes) / 2 - 0.5, [name.replace("blocks.", "") for name in layers], fontsize=7)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("sub-layer (positions, BOS first)", fontsize=8)
    panels[0].set_yticks(range(len(labels)), labels, fontsize=7)
    figure.colorbar(image, ax=list(panels), shrink=0.7)
    return figure


def overview(model: CompressedModel) -> Figure:
    """Draw one page about a model: W Wᵀ, the loss during training, and the sizes of the features."""
    size = 1.5 + 0.21 * len(model.labels)
    figure = _figure(size + 4.5, size)
    left, right = figure.subplots(1, 2, width_ratios=[size, 4])
    image = left.imshow(model.gram, cmap="RdBu_r", vmin=-1, vmax=1)
    left.set_xticks(range(len(model.labels)), model.labels, rotation=90, fontsize=7)
    left.set_yticks(range(len(model.labels)), model.labels, fontsize=7)
    left.set_title("W Wᵀ", fontsize=9)
    figure.colorbar(image, ax=left, shrink=0.7)
    training = model.training
    if training.curve:
        right.plot(training.steps, training.curve, color="C0")
        right.set(yscale="log", ylabel="loss", xlabel="step" if training.method == "sgd" else "seconds")
    else:
        right.bar(range(len(model.labels)), np.diag(model.gram))
        right.set_xticks(range(len(model.labels)), model.labels, rotation=90, fontsize=7)
        right.set_ylabel("read back")
    figure.suptitle(repr(model).removeprefix("CompressedModel(").removesuffix(")"), fontsize=10)
    return figure
