"""Superposition without training: every feature gets a known direction, and the model still computes the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import flag, whole
from tracr.compress.closed import residual_streams
from tracr.compress.compressing import MEASURED, measured, unchanged
from tracr.compress.lossless import lossless
from tracr.compress.model import CompressedModel, Training
from tracr.compress.projection import Projection, sites_of
from tracr.compress.readings import readings
from tracr.compress.task import Task, require_labelled, task_of
from tracr.errors import TracrError
from tracr.model.designed import DesignedModel
from tracr.values import Value

__all__ = ["superpose"]

MOST_DIMENSIONS = 20_000  # most dimensions: a rotation of more takes gigabytes


def superpose(
    model: DesignedModel,
    dim: int,
    seed: int = 0,
    *,
    exact: bool = True,
    inputs: Sequence[Sequence[Value]] | None = None,
) -> CompressedModel:
    """The model with its D features in random directions of `dim` dimensions, listed in `model.features`.

    Let U [D, r] be a projection without loss (`lossless.py`). Writes go through [U, N] Q and reads through [U, 0] Q,
    with a random matrix N [D, dim − r] and a random rotation Q. A read is then x [U, N] Q Qᵀ [U, 0]ᵀ B = x U Uᵀ B as
    before, so the outputs stay the same for any N. N also gives a direction to features without readers.

    This holds for every input the model takes, or for `inputs` if they are given, and needs dim ≥ r. With fewer
    dimensions than `exact_dim(model)` the search of `exact_dims` looks for U, and an error says if it finds none. With
    `exact=False` any number of dimensions is allowed: below `exact_dim(model)`, directions are random unit vectors W,
    and labels are read with the least squared error (`_least_squares`). The model then computes its program more or
    less (`model.report()` measures it). `tracr.lab.features` has models with hundreds of features that tolerate such
    errors.
    """
    require_labelled(model, "put in superposition")
    dim, seed, exact = whole("dim", dim, 1), whole("seed", seed), flag("exact", exact)
    if dim > MOST_DIMENSIONS:
        raise TracrError(f"{dim:,} dimensions are more than can be drawn", hint=f"use at most {MOST_DIMENSIONS:,}")
    task = task_of(model, inputs, MEASURED)
    rng = np.random.default_rng(seed)
    width, readers = task.network.width, readings(model, inputs)
    U = lossless(readers)
    if exact and dim < U.shape[1]:
        U = lossless(readers, dim)
    extra = dim - U.shape[1]
    if extra < 0:
        rows = rng.normal(size=(width, dim))
        write = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        matrices, sharing = np.stack([write, _least_squares(task, write)]), "read-write"
    else:
        rotation = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        noise = rng.normal(size=(width, extra)) / np.sqrt(max(1, extra))
        write, read = np.hstack([U, noise]) @ rotation, np.hstack([U, np.zeros((width, extra))]) @ rotation
        matrices, sharing = np.stack([write, read]), "read-write"
    projection = Projection(matrices, sites_of(task.network, sharing))
    made = measured(model, task, projection, Training("superpose", seed))
    return made if extra < 0 else unchanged(made)


def _least_squares(task: Task, write: NDArray[Any]) -> NDArray[Any]:
    """The R [D, dim] for which the streams x of the compiled model are read best from x W: Σ|x W Rᵀ - x|² is least.

    Directions that no stream holds are read with 0.
    """
    streams = np.concatenate(residual_streams(task))
    square = streams.T @ streams
    return np.asarray((np.linalg.pinv(write.T @ square @ write, rcond=1e-9, hermitian=True) @ write.T @ square).T)
