"""Measures many projections of one model together: losses, accuracy and cosines, on the device that trained them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.mechanism import exchanges, slope_of
from tracr.compress.objective import Added, Objective, Params, Tensor
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
    """Measures runs of one model (projections, and weights if these were trained) in float64, with a program that is
    compiled once."""

    def __init__(self, model: DesignedModel, task: Task, sites: ProjectionSites) -> None:
        self._model, self._task = model, task
        self._objective = Objective(task, sites, dtype=np.float64)
        self._wanted = compiled_logits(model, task)
        self.compiled_loss = output_loss_of(task, self._wanted)
        activations = task.ids.size * (sum(part.dims.size for part in task.network.parts) + self._wanted.shape[-1])
        self._rows = max(1, NUMBERS // max(1, activations))
        self._measure = self._objective.jax.jit(self._objective.jax.vmap(self._one))

    def __call__(self, params: Params) -> Iterator[MeasuredRun]:
        """The measurements of each run; `params` have a leading axis of runs."""
        tokens = token_positions(self._task)
        for some, count in self._together(params):
            with self._objective.jax.enable_x64(True):
                output, layers, cosines, logits = map(np.asarray, self._measure(some))
            for number in range(count):
                right = decoded_alike(self._model, logits[number], self._wanted)[tokens]
                losses = float(output[number]), float(layers[number].sum())
                yield MeasuredRun(*losses, float(right.mean()), tuple(cosines[number].tolist()))

    def slopes(self, params: Params) -> dict[str, Array]:
        """For every variable that the output depends on, the causal slope (`mechanism.Swap`) of each run."""
        task, exchanged = exchanges(self._model, self._task)
        objective = Objective(task, self._objective.sites, dtype=np.float64)
        tokens, found = token_positions(task), {}
        before = self._logits(objective, params, None)
        for one in exchanged:
            wanted = (one.wanted - one.base)[tokens]
            if np.isfinite(slope_of(self._model, wanted, wanted)):
                after = self._logits(objective, params, (one.writer, one.change, one.dims))
                change = (after - before)[:, tokens]
                found[one.variable] = np.array([slope_of(self._model, got, wanted) for got in change])
        return found

    def _together(self, params: Params) -> Iterator[tuple[Params, int]]:
        """The runs in groups of one size, in float64, and how many of each group are meant."""
        map_over, runs = self._objective.jax.tree.map, len(params["W"])
        rows = min(self._rows, max(1, runs))
        for start in range(0, runs, rows):
            places = np.minimum(np.arange(start, start + rows), runs - 1)
            some = map_over(lambda array, places=places: np.asarray(array[places], dtype=np.float64), params)
            yield some, min(rows, runs - start)

    def _logits(self, objective: Objective, params: Params, added: Added | None) -> Array:
        """The logits of each run [run, input, position, logit]."""
        run = objective.jax.jit(objective.jax.vmap(lambda some: objective.forward(some, added=added)[1]))
        found = []
        with objective.jax.enable_x64(True):
            for some, count in self._together(params):
                found.append(np.asarray(run(some))[:count])
        return np.concatenate(found)

    def _one(self, params: Params) -> tuple[Tensor, Tensor, Tensor, Tensor]:
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
