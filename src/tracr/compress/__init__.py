"""Compression: compiled models in fewer dimensions, which features then share (superposition).

network.py       the reads and writes of each sub-layer
task.py          the inputs, and the activations of the compiled model on them
projection.py    the projection, and folding it into weights
objective.py     the loss, in JAX
sgd.py           the paper's recipe, for any number of runs in one program
fast.py          our optimiser: exact and random starts, softened attention; polish.py its second-order steps
readings.py      what is read at every place, on all inputs the model takes
closed.py        PCA, and a projection without loss; narrow.py the same in fewer dimensions, by a search
lossless.py      chooses between the two, or refuses
compressing.py   `compress`
model.py         CompressedModel; refusals.py the methods it lacks; saving.py its folders
observing.py     what a compressed model's sub-layers write; measuring.py the same for many projections together
report.py        measures a compressed model against the compiled one; mechanism.py its variables
figures.py       the figures of the paper's section 5
superposing.py   `superpose`: superposition without training
sweep.py         many runs, resumable; store.py their results
paper.py         the paper's two case studies
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tracr.compress.compressing import METHODS, compress
from tracr.compress.fast import FastRecipe
from tracr.compress.lossless import ExactDims, exact_dim, exact_dims
from tracr.compress.model import CompressedModel, Training
from tracr.compress.observing import layer_outputs
from tracr.compress.report import Report
from tracr.compress.sgd import Recipe
from tracr.compress.superposing import superpose
from tracr.compress.sweep import sweep
from tracr.compress.task import all_inputs

__all__ = [
    "METHODS",
    "CompressedModel",
    "ExactDims",
    "FastRecipe",
    "Recipe",
    "Report",
    "Training",
    "all_inputs",
    "compress",
    "exact_dim",
    "exact_dims",
    "layer_outputs",
    "superpose",
    "sweep",
]


class _Callable(ModuleType):
    """Makes the package callable: `tracr.compress(...)` calls its function `compress`."""

    def __call__(self, *args: Any, **kwargs: Any) -> CompressedModel:
        return compress(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
