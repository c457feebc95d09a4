"""Superposition without training: every feature gets a known direction, and the model still computes its program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracr.arguments import flag, whole
from tracr.compress.closed import exact_projection
from tracr.compress.compressing import measured
from tracr.compress.model import CompressedModel, Training
from tracr.compress.projection import Projection, sites_of
from tracr.compress.task import require_labelled, task_of
from tracr.errors import TracrError
from tracr.model.compiled import CompiledModel
from tracr.values import Value

__all__ = ["superpose"]

MOST = 20_000  # dimensions: a rotation of them takes gigabytes


def superpose(
    model: CompiledModel,
    dim: int,
    seed: int = 0,
    *,
    exact: bool = True,
    inputs: Sequence[Sequence[Value]] | None = None,
) -> CompressedModel:
    """The model with its D features in random directions of `dim` dimensions; `model.features` says which.

    Let U [D, r] be the smallest projection that loses nothing (`closed.exact_projection`). The stream is written
    through [U, N] Q and read through [U, 0] Q, with N a random matrix [D, dim − r] and Q a random rotation: what is
    read is x [U, N] Q Qᵀ [U, 0]ᵀ B = x U Uᵀ B, as before, so outputs stay exactly what they were, for any N. N gives
    features that nothing reads a direction too.

    That needs dim ≥ r = `exact_dim(model)`. With `exact=False` fewer will do: directions are then random unit vectors,
    read back as they are written, and the model does not compute its program any more (`model.report()` says how well).
    """
    require_labelled(model, "put in superposition")
    dim, seed, exact = whole("dim", dim, 1), whole("seed", seed), flag("exact", exact)
    if dim > MOST:
        raise TracrError(f"{dim:,} dimensions are more than can be drawn", hint=f"use at most {MOST:,}")
    task = task_of(model, inputs)
    rng = np.random.default_rng(seed)
    width, U = task.network.width, exact_projection(task)
    extra = dim - U.shape[1]
    if extra < 0 and exact:
        raise TracrError(
            f"in {dim} dimensions the model cannot compute its program exactly: that takes {U.shape[1]}",
            hint="use more; or compress(model, dim), which loses little; or exact=False for random directions alone",
        )
    if extra < 0:
        rows = rng.normal(size=(width, dim))
        matrices, sharing = (rows / np.linalg.norm(rows, axis=1, keepdims=True))[None], "one"
    else:
        rotation = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        noise = rng.normal(size=(width, extra)) / np.sqrt(max(1, extra))
        write, read = np.hstack([U, noise]) @ rotation, np.hstack([U, np.zeros((width, extra))]) @ rotation
        matrices, sharing = np.stack([write, read]), "read-write"
    projection = Projection(matrices, sites_of(task.network, sharing))
    return measured(model, task, projection, Training("superpose", seed))
