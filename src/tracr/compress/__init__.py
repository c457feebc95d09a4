"""Compression: compiled models in fewer dimensions, so that features share them (superposition).

network.py       what each sub-layer reads and writes
task.py          inputs, and what the compiled model computes on them
projection.py    the projection, and folding it into weights
objective.py     the loss, in JAX
sgd.py           the paper's recipe, any number of runs in one program
fast.py          many starts, softened attention, second-order polish
closed.py        PCA, and the smallest projection that loses nothing
compressing.py   `compress`
model.py         CompressedModel
report.py        what it computes, and how
"""

from __future__ import annotations

from tracr.compress.compressing import METHODS, compress, exact_dim
from tracr.compress.fast import FastRecipe
from tracr.compress.model import CompressedModel, Training
from tracr.compress.report import Report, layer_outputs
from tracr.compress.sgd import Recipe
from tracr.compress.task import all_inputs

__all__ = [
    "METHODS",
    "CompressedModel",
    "FastRecipe",
    "Recipe",
    "Report",
    "Training",
    "all_inputs",
    "compress",
    "exact_dim",
    "layer_outputs",
]
