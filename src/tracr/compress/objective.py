"""The loss of a projection, in JAX: output loss plus squared differences of the sub-layers' writes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tracr.compress.network import Attention, Network
from tracr.compress.projection import ProjectionSites
from tracr.compress.task import Task
from tracr.extras import need

__all__ = ["Added", "Losses", "Objective", "Params", "Tensor"]

Tensor = Any
Params = dict[str, Any]
"""The trained arrays: "W" [matrices, D, d], and with `train_weights` also "parts", the sub-layers' own weights."""
Added = tuple[int, Any, Any]
"""An intervention: the number of the writer after which it comes (0: the embedding), what to add [input, position, S],
and the dimensions S."""
FAR = -1e30  # the score of a masked key


@dataclass(frozen=True)
class Losses:
    """The loss of the output and the loss of each sub-layer."""

    output: Tensor
    layers: Tensor


class Objective:
    """The forward pass of compressed models on a task, and its losses, for `jax.jit`, `vmap` and `grad`.

    Activations that depend only on (token, position) are computed per pair (a table [pair, ...]). After a head has
    mixed positions, they are computed per input [input, position, ...].
    """

    def __init__(
        self,
        task: Task,
        sites: ProjectionSites,
        *,
        output_weight: float = 1.0,
        layer_weight: float = 1.0,
        dtype: Any = np.float32,
    ) -> None:
        self.jax, self.jnp = need("jax", "jax"), need("jax.numpy", "jax")
        self.task, self.sites = task, sites
        self.output_weight, self.layer_weight = output_weight, layer_weight
        self.dtype = dtype

    def array(self, array: Any) -> Tensor:
        """An array of the objective's type: a constant, or one that is trained."""
        return self.jnp.asarray(array, dtype=self.dtype)

    def weights(self) -> list[dict[str, Any]]:
        """The sub-layers' own weights, for `train_weights`."""
        return [
            {field.name: self.array(getattr(part, field.name)) for field in fields(part) if _is_weight(field.name)}
            for part in self.task.network.parts
        ]

    def trained(self, params: Params) -> Network:
        """The network with its trained weights, if they were trained."""
        network = self.task.network
        if "parts" not in params:
            return network
        parts = []
        for part, weights in zip(network.parts, params["parts"], strict=True):
            own: dict[str, Any] = {name: np.asarray(array, dtype=np.float64) for name, array in weights.items()}
            parts.append(replace(part, **own))
        return replace(network, parts=tuple(parts))

    # The forward pass

    def forward(
        self, params: Params, batch: Tensor | None = None, sharpness: Any = 1.0, added: Added | None = None
    ) -> tuple[list[Tensor], Tensor]:
        """The writes of every sub-layer on its dimensions, and the logits: [input, position, ...].

        `batch` holds the numbers of the inputs (default: all); `sharpness` multiplies attention scores. With `added` an
        intervention adds to the stream after one of the writers.
        """
        with self.full_precision():
            return _Pass(self, params, batch, sharpness, added).run()

    def full_precision(self) -> AbstractContextManager[None]:
        """Products traced in this context, and their derivatives, use all digits.

        GPUs and TPUs otherwise round the factors to about 3 digits, too few for sharp attention.
        """
        context: AbstractContextManager[None] = self.jax.default_matmul_precision("highest")
        return context

    def exact(self, sharpness: Any = 1.0) -> list[Tensor]:
        """The writes of the uncompressed model's sub-layers, with attention scores multiplied by `sharpness`."""
        whole = self.jnp.broadcast_to(
            self.jnp.eye(self.task.network.width, dtype=self.dtype), (self.sites.count, *[self.task.network.width] * 2)
        )
        return self.forward({"W": whole}, None, sharpness)[0]

    # Losses

    def losses(
        self, params: Params, batch: Tensor | None = None, sharpness: Any = 1.0, targets: list[Tensor] | None = None
    ) -> Losses:
        """The output loss, and for each sub-layer the mean squared difference over real positions.

        `targets` are the wanted writes of the sub-layers, by default those of the compiled model.
        """
        outs, logits = self.forward(params, batch, sharpness)
        return self.losses_of(outs, logits, batch, targets)

    def losses_of(
        self, outs: list[Tensor], logits: Tensor, batch: Tensor | None = None, targets: list[Tensor] | None = None
    ) -> Losses:
        """The losses of the result of `forward`."""
        jnp, task = self.jnp, self.task

        def pick(array: Any) -> Tensor:
            return array if batch is None else array[batch]

        real = pick(self.array(task.real))
        wanted = [self.array(target) for target in task.targets] if targets is None else targets
        layers = [
            (((out - pick(target)) ** 2).sum(axis=-1) * real).sum() / real.sum()
            for out, target in zip(outs, wanted, strict=True)
        ]
        tokens = real.at[:, 0].set(0.0)  # BOS has no output
        loss: Any = 0.0
        for output in task.outputs:
            mine = logits[..., output.start : output.stop]
            if output.categorical:
                codes = pick(jnp.asarray(output.wanted))
                per = -jnp.take_along_axis(self.jax.nn.log_softmax(mine), codes[..., None], axis=-1)[..., 0]
            else:
                per = ((mine - pick(self.array(output.wanted))) ** 2).sum(axis=-1)
            loss = loss + (per * tokens).sum() / tokens.sum()
        return Losses(loss, jnp.stack(layers) if layers else jnp.zeros(0))

    def loss(
        self, params: Params, batch: Tensor | None = None, sharpness: Any = 1.0, targets: list[Tensor] | None = None
    ) -> Tensor:
        """The loss to minimise."""
        found = self.losses(params, batch, sharpness, targets)
        return self.output_weight * found.output + self.layer_weight * found.layers.sum()


class _Pass:
    """One forward pass."""

    def __init__(
        self, objective: Objective, params: Params, batch: Tensor | None, sharpness: Any, added: Added | None
    ) -> None:
        self.objective, self.params, self.sharpness, self.added = objective, params, sharpness, added
        self.jnp, self.array, task = objective.jnp, objective.array, objective.task
        place, real = self.jnp.asarray(task.place), self.jnp.asarray(task.real)
        self.place = place if batch is None else place[batch]
        self.real = (real if batch is None else real[batch]) if task.masked else None
        self.embedded = self.array(task.embedded) @ self.write(0)
        self.tables: list[tuple[Tensor, Tensor]] = []  # writes of sub-layers per pair, and their rows of W
        self.mixed: list[tuple[Tensor, Tensor]] = []  # the same per input and position

    def write(self, number: int) -> Tensor:
        return self.params["W"][self.objective.sites.writes[number]]

    def read(self, number: int) -> Tensor:
        return self.params["W"][self.objective.sites.reads[number]].T

    def add(self, writer: int) -> None:
        """Add the intervention to the stream if it comes after this writer."""
        if self.added is not None and self.added[0] == writer:
            self.mixed.append((self.array(self.added[1]), self.write(writer)[np.asarray(self.added[2])]))

    def run(self) -> tuple[list[Tensor], Tensor]:
        outs = []
        self.add(0)
        network = self.objective.task.network
        for number, part in enumerate(network.parts):
            rows = self.write(number + 1)[np.asarray(part.dims, dtype=np.int32)]
            own = self.params["parts"][number] if "parts" in self.params else vars(part)
            if isinstance(part, Attention):
                out = self.attend(part, own, self.read(number))
                self.mixed.append((out, rows))
            else:
                out, per_pair = self.neurons(own, self.read(number))
                (self.tables if per_pair else self.mixed).append((out, rows))
                out = out[self.place] if per_pair else out
            outs.append(out)
            self.add(number + 1)
        return outs, self.spread(*self.reads(self.read(len(network.parts)) @ self.array(network.W_U)))

    def reads(self, matrix: Tensor) -> tuple[Tensor, Tensor | None]:
        """The residual stream through a matrix [d, m]: the part per pair, and the part per input."""
        table, rest = self.embedded @ matrix, None
        for out, rows in self.tables:
            table = table + out @ (rows @ matrix)
        for out, rows in self.mixed:
            added = out @ (rows @ matrix)
            rest = added if rest is None else rest + added
        return table, rest

    def spread(self, table: Tensor, rest: Tensor | None) -> Tensor:
        """The sum of the part per pair and the part per input: [input, position, ...]."""
        return table[self.place] if rest is None else table[self.place] + rest

    def neurons(self, own: Any, read: Tensor) -> tuple[Tensor, bool]:
        """The writes of an MLP: per pair, if no head before it mixed positions."""
        table, rest = self.reads(read @ self.array(own["W_in"]))
        pre = table if rest is None else self.spread(table, rest)
        hidden = self.jnp.maximum(pre + self.array(own["b_in"]), 0)
        return hidden @ self.array(own["W_out"]) + self.array(own["b_out"]), rest is None

    def attend(self, part: Attention, own: Any, read: Tensor) -> Tensor:
        """The writes of the heads of a layer."""
        jnp, place = self.jnp, self.place
        heads, width, size = part.W_Q.shape
        moved = part.W_V.shape[2]

        def all_heads(name: str) -> tuple[Tensor, Tensor | None]:
            flat = jnp.moveaxis(self.array(own[f"W_{name}"]), 0, 1).reshape(width, -1)
            table, rest = self.reads(read @ flat)
            return table + self.array(own[f"b_{name}"]).reshape(-1), rest

        query, key, value = (all_heads(name) for name in "QKV")
        if query[1] is None and key[1] is None:
            pairs = query[0].shape[0]
            q, k = (side[0].reshape(pairs, heads, size) for side in (query, key))
            table = jnp.einsum("qhs,khs->hqk", q, k).reshape(heads, pairs * pairs)
            scores = table[:, place[:, :, None] * pairs + place[:, None, :]]  # [head, input, query, key]
        else:
            q, k = (self.spread(*side).reshape(*place.shape, heads, size) for side in (query, key))
            scores = jnp.einsum("nqhs,nkhs->hnqk", q, k)
        scores = scores * self.sharpness
        if self.real is not None:
            scores = jnp.where(self.real[:, None, :], scores, FAR)
        if self.objective.task.network.causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[2:], dtype=bool)), scores, FAR)
        weights = jnp.exp(scores - self.objective.jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True)))
        values = self.spread(*value).reshape(*place.shape, heads, moved)
        mean = jnp.einsum("hnqk,nkhv->nqhv", weights, values) / jnp.moveaxis(weights.sum(axis=-1), 0, 2)[..., None]
        return mean.reshape(*place.shape, heads * moved) @ self.array(own["W_O"]).reshape(
            heads * moved, -1
        ) + self.array(own["b_O"])


def _is_weight(name: str) -> bool:
    return name not in ("name", "layer", "dims")
