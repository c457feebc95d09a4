"""Measures many projections of one model together: losses, accuracy and cosines, on the device that trained them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.mechanism import exchanges, slope_of
from tracr.compress.objective import Added, Objective, Tensor
from tracr.compress.observing import compiled_logits, decoded_alike, output_loss_of, token_positions
from tracr.compress.projection import ProjectionSites
from tracr.compress.task import Task
from tracr.model.designed import DesignedModel

__all__ = ["MeasuredRun", "Measuring"]

Array = NDArray[Any]
NUMBERS = 20_000_000  # numbers of activations held for one group of projections


@dataclass(frozen=True)
class MeasuredRun:
    """What was measured of a projection: losses on all inputs of the task, the share of right positions, and for every
    sub-layer the mean cosine of its writes."""

    output_loss: float
    layer_loss: float
    accuracy: float
    cosines: tuple[float, ...]

    @property
    def cosine(self) -> float:
        """The mean over sub-layers."""
        return float(np.mean(self.cosines)) if self.cosines else 1.0


class Measuring:
    """Measures projections [runs, matrices, D, d] of one model in float64, with a program that is compiled once."""

    def __init__(self, model: DesignedModel, task: Task, sites: ProjectionSites) -> None:
        self._model, self._task = model, task
        self._objective = Objective(task, sites, dtype=np.float64)
        self._wanted = compiled_logits(model, task)
        self.compiled_loss = output_loss_of(task, self._wanted)
        activations = task.ids.size * (sum(part.dims.size for part in task.network.parts) + self._wanted.shape[-1])
        self._rows = max(1, NUMBERS // max(1, activations))
        self._measure = self._objective.jax.jit(self._objective.jax.vmap(self._one))

    def __call__(self, matrices: Array) -> Iterator[MeasuredRun]:
        """The measurements of each projection."""
        tokens = token_positions(self._task)
        rows = min(self._rows, max(1, len(matrices)))
        for start in range(0, len(matrices), rows):
            some = np.asarray(matrices[start : start + rows], dtype=np.float64)
            padded = np.concatenate([some, np.repeat(some[-1:], rows - len(some), axis=0)])
            with self._objective.jax.enable_x64(True):
                output, layers, cosines, logits = map(np.asarray, self._measure({"W": padded}))
            for number in range(len(some)):
                right = decoded_alike(self._model, logits[number], self._wanted)[tokens]
                losses = float(output[number]), float(layers[number].sum())
                yield MeasuredRun(*losses, float(right.mean()), tuple(cosines[number].tolist()))

    def slopes(self, matrices: Array) -> dict[str, Array]:
        """For every variable that the output depends on, the causal slope (`mechanism.Swap`) of each projection."""
        task, exchanged = exchanges(self._model, self._task)
        objective = Objective(task, self._objective.sites, dtype=np.float64)
        tokens, found = token_positions(task), {}
        before = self._logits(objective, matrices, None)
        for one in exchanged:
            wanted = (one.wanted - one.base)[tokens]
            if np.isfinite(slope_of(self._model, wanted, wanted)):
                after = self._logits(objective, matrices, (one.writer, one.change, one.dims))
                change = (after - before)[:, tokens]
                found[one.variable] = np.array([slope_of(self._model, got, wanted) for got in change])
        return found

    def _logits(self, objective: Objective, matrices: Array, added: Added | None) -> Array:
        """The logits of each projection [run, input, position, logit]."""
        run = objective.jax.jit(objective.jax.vmap(lambda W: objective.forward({"W": W}, added=added)[1]))
        with objective.jax.enable_x64(True):
            return np.asarray(run(np.asarray(matrices, dtype=np.float64)))

    def _one(self, params: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        jnp, task = self._objective.jnp, self._task
        outs, logits = self._objective.forward(params)
        losses = self._objective.losses_of(outs, logits)
        cosines = [self._cosine(out, target) for out, target in zip(outs, task.targets, strict=True)]
        return losses.output, losses.layers, jnp.stack(cosines) if cosines else jnp.zeros(0), logits

    def _cosine(self, out: Tensor, target: Array) -> Tensor:
        """The mean cosine over the real positions at which the compiled model writes something."""
        jnp = self._objective.jnp
        length = np.linalg.norm(target, axis=-1)
        there = self._task.real & (length > 1e-9)
        size = jnp.linalg.norm(out, axis=-1) * length
        cosine = (out * target).sum(axis=-1) / jnp.where(size > 0, size, 1.0)
        return jnp.where(there, cosine, 0.0).sum() / there.sum() if there.any() else jnp.ones(())
