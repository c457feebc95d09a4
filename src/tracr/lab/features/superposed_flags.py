"""A feature case's model in fewer dimensions: its flags packed (`packing.py`), everything else kept apart.

The stream has a dimension for each label that is no flag (BOS, PAD, positions), one dimension that the answer is read
from, and `m` dimensions that all flags share. Then everything is turned by a random rotation.

- The head reads its values with the dual frame R = V (VᵀV)⁻¹ and writes along V Q: together this is x V R V Q = x V Q,
  exact for any m.
- Neurons read hits by the vectors of the packing, and are steps.
- A hit is written along the answer's dimension, as long as its importance says, and along a random direction of the
  shared dimensions, which nothing reads. The answer is read from its own dimension alone: exactly.

So hits are the only place of errors, and `packing.worst` has the worst of them over all inputs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.model import CompressedModel, Training, compressed_model
from tracr.compress.observing import measured_losses
from tracr.compress.projection import Projection, ProjectionSites
from tracr.compress.task import task_of
from tracr.errors import TracrError
from tracr.lab.features.flag_program import FlagProgram
from tracr.lab.features.packing import Packing, pack
from tracr.lab.features.stepping import stepped
from tracr.model.designed import DesignedModel
from tracr.values import Value

__all__ = ["orthogonal_flags", "superposed_flags"]

Array = NDArray[Any]
ANSWER = 0.25  # the length of a hit of mean importance along the dimension of the answer


def superposed_flags(
    model: DesignedModel, program: FlagProgram, dim: int, seed: int, inputs: list[list[Value]]
) -> tuple[CompressedModel, Packing]:
    """The model in `dim` dimensions, its losses measured on `inputs`, and the packing of its flags."""
    labels = list(model.residual.labels)
    own, before, hits = (_places(labels, name, program.features) for name in ("own", "before", program.hits))
    flags = {*own, *before, *hits}
    frame = [place for place in range(len(labels)) if place not in flags]
    shared = dim - len(frame) - 1
    if shared < 2:
        raise TracrError(
            f"{dim} dimensions leave none for features: {len(frame) + 1} are for positions and the answer",
            hint=f"use at least {len(frame) + 3} dimensions",
        )
    rng = np.random.default_rng([seed, dim, 1])
    packing = pack(program, shared, seed)
    matrices = np.zeros((4, len(labels), dim))
    matrices[:, frame, np.arange(len(frame))] = 1
    write, values, neurons, _ = matrices[:, :, len(frame) + 1 :]
    V = packing.directions
    write[own], write[before] = V, V @ packing.turn
    noise = rng.normal(size=V.shape)
    write[hits] = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    values[own] = np.linalg.pinv(V).T
    relation = program.relation
    neurons[own] = packing.reads * relation.own_factor / 2
    neurons[np.array(before)[program.partner]] = packing.reads * relation.before_factor / 2
    weight = program.importance.astype(np.float64)
    matrices[0][hits, len(frame)] = ANSWER * weight / weight.mean()
    matrices[3][hits, len(frame)] = weight * weight.mean() / (ANSWER * (weight @ weight))
    rotation = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    projection = Projection(matrices @ rotation, ProjectionSites(4, (0, 0, 0), (1, 2, 3)))
    return _measured(model, projection, seed, inputs), packing


def orthogonal_flags(model: DesignedModel, inputs: list[list[Value]], seed: int) -> CompressedModel:
    """The control: the model in its own dimensions, turned by a random rotation, with the steps of superposed ones."""
    dim = model.d_model
    rotation = np.linalg.qr(np.random.default_rng([seed, dim, 1]).normal(size=(dim, dim)))[0]
    parts = len(task_of(model, inputs[:1]).network.parts) + 1
    return _measured(model, Projection(rotation[None], ProjectionSites(1, (0,) * parts, (0,) * parts)), seed, inputs)


def _places(labels: list[str], name: str, count: int) -> list[int]:
    """The dimensions of the features of one kind."""
    missing = {f"{name}{i}" for i in range(count)} - {*labels}
    if missing:
        raise TracrError(
            f"the model has no dimension for {min(missing)}: the compiler stores it in another way",
            hint="use the case's own model, and more tokens",
        )
    return [labels.index(f"{name}{i}") for i in range(count)]


def _measured(model: DesignedModel, projection: Projection, seed: int, inputs: list[list[Value]]) -> CompressedModel:
    task = task_of(model, inputs)
    network = stepped(task.network)
    made = compressed_model(model, network, projection, Training("flags", seed))
    output, layers, floor = measured_losses(made, task, network)
    training = replace(made.training, loss=output + layers, output_loss=output, layer_loss=layers, compiled_loss=floor)
    return replace(made, training=training)
