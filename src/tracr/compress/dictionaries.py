"""Dictionary learning on models with known features: sample models, their activations, and a score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.closed import residual_streams
from tracr.compress.lossless import exact_dim
from tracr.compress.model import CompressedModel
from tracr.compress.superposing import superpose
from tracr.compress.task import task_of
from tracr.errors import TracrError
from tracr.model.designed import DesignedModel

__all__ = ["Sample", "Score", "activations", "samples", "score"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Sample:
    """A model in superposition, as a problem for dictionary learning.

    `activations` [rows, d] are residual streams at the end of the model. They equal `codes` [rows, F] @ `directions`
    [F, d]; `features` are the names of the F features.
    """

    program: str
    model: CompressedModel
    activations: Array
    codes: Array
    directions: Array
    features: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """The score of a dictionary: the number of true features `recovered`, with a cosine above `threshold`, and the mean
    over true features of the best cosine."""

    features: int
    recovered: int
    mean_cosine: float
    threshold: float

    def __str__(self) -> str:
        return f"{self.recovered} of {self.features} features recovered, mean best cosine {self.mean_cosine:.3f}"


def activations(model: CompressedModel) -> tuple[Array, Array]:
    """The last residual stream at every position of every input [rows, d], and that of the compiled model [rows, D]."""
    task = task_of(model.compiled)
    codes = residual_streams(task)[-1]
    if model.projection.sites.count > 2 or len(set(model.projection.sites.writes)) > 1:
        raise TracrError(
            "the model writes through several projections, so its features have several directions",
            hint="compress with sharing='one'",
        )
    return codes @ model.W, codes


def samples(
    models: Mapping[str, DesignedModel], dims: Iterable[int] | None = None, seeds: Iterable[int] = range(3)
) -> Iterator[Sample]:
    """Samples of models × dims × seeds in exact superposition; dims below `exact_dim` are left out.

    Without `dims`: every second number of dimensions, from `exact_dim` up to the model's own.
    """
    chosen = None if dims is None else list(dims)
    numbers = list(seeds)
    for name, compiled in models.items():
        smallest = exact_dim(compiled)
        for dim in range(smallest, compiled.d_model, 2) if chosen is None else chosen:
            if dim >= smallest:
                for seed in numbers:
                    yield sample_of(name, superpose(compiled, dim, seed))


def sample_of(name: str, model: CompressedModel) -> Sample:
    """A model with its activations, and the features that occur in the activations and have a direction."""
    rows, codes = activations(model)
    used = (np.abs(codes).max(axis=0) > 1e-9) & (np.linalg.norm(model.W, axis=1) > 1e-9)
    labels = tuple(label for label, there in zip(model.labels, used, strict=True) if there)
    return Sample(name, model, rows, codes[:, used], model.W[used], labels)


def score(dictionary: Array, directions: Array, threshold: float = 0.9) -> Score:
    """Compare a dictionary [atoms, d] with the true directions [F, d], ignoring signs and lengths."""
    found, true = _unit(np.asarray(dictionary)), _unit(np.asarray(directions))
    if found.shape[1] != true.shape[1]:
        raise TracrError(
            f"the dictionary has {found.shape[1]} dimensions, the directions have {true.shape[1]}",
            hint="learn it on activations of the same model",
        )
    best = np.abs(true @ found.T).max(axis=1, initial=0.0)
    return Score(len(true), int((best > threshold).sum()), float(best.mean()), threshold)


def _unit(rows: Array) -> Array:
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(size > 0, size, 1.0))
