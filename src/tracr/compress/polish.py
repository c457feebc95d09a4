"""Levenberg-Marquardt steps for several runs together; they can also pull columns of the projection to zero, or soften
attention and let weights decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracr.compress.objective import Objective, Params
from tracr.compress.rounds import OF_OUTPUT
from tracr.extras import need

__all__ = ["Polish"]

BLOCK = 5  # iterations in one call


class Polish:
    """Second-order steps; the loss is that of `objective` plus `pull` times the squares of the last `surplus` columns.

    The loss is a sum of squares c r² (of sub-layers and numerical outputs) and of cross-entropies of logits z, with
    p = softmax z, weighted by c. Let J be the Jacobian of r or z. For the squares, slope and curvature are Aᵀb and AᵀA,
    where A = √(2c) J and b = √(2c) r. For the cross-entropy with one-hot target y they are c Jᵀ(p − y) and
    (Gauss-Newton) c Jᵀ(diag p − p pᵀ)J. These are again Aᵀb and AᵀA, with A = √c diag(√p) (J − 1 pᵀJ) and
    b = √c (√p − y/√p), because Σp = Σy.

    The model depends only on W Wᵀ, so the columns may be rotated. After each step they are rotated to make the last
    columns as small as possible.
    """

    def __init__(self, objective: Objective, example: Params, surplus: int = 0) -> None:
        self.objective, self.surplus = objective, surplus
        self.jax, self.jnp = objective.jax, objective.jnp
        ravel = need("jax.flatten_util", "jax").ravel_pytree
        self._flat: Any = lambda params: ravel(params)[0]
        self._params: Any = ravel(example)[1]
        weight = self.jax.tree.map(self.jnp.zeros_like, example)
        if surplus:
            weight["W"] = weight["W"].at[..., -surplus:].set(2.0)
        self._pulled = self._flat(weight)
        read = np.any(objective.task.network.W_U, axis=1)
        share = self.jnp.asarray(np.where(read, OF_OUTPUT, 1.0)[:, None])
        zeros = self.jax.tree.map(self.jnp.zeros_like, example)
        self._decayed = self._flat(zeros | {"W": zeros["W"] + share})
        self._iterate = self.jax.jit(self.jax.vmap(self._pulling, (0, 0, None)))
        self._iterate_soft = self.jax.jit(self.jax.vmap(self._decaying, (0, 0, None, 0)))

    def rows(self, params: Params) -> Any:
        """The parameters of runs as rows of numbers."""
        return self.jax.vmap(self._flat)(params)

    def params(self, row: Any) -> Params:
        """The parameters of one run from its row of numbers."""
        found: Params = self._params(row)
        return found

    def iterate(self, rows: Any, damping: Any, pull: float) -> tuple[Any, Any, Any]:
        """Do some iterations of every run; returns rows, damping and losses (with the part of the pull)."""
        found: tuple[Any, Any, Any] = self._iterate(rows, damping, pull)
        return found

    def iterate_soft(self, rows: Any, damping: Any, decay: float, sharpness: Any) -> tuple[Any, Any, Any]:
        """The same with weight decay, and with attention scores multiplied by `sharpness` [run]."""
        found: tuple[Any, Any, Any] = self._iterate_soft(rows, damping, decay, sharpness)
        return found

    def _pulling(self, row: Any, damping: Any, pull: Any) -> Any:
        return self._iterations(row, damping, pull * self._pulled, 1.0)

    def _decaying(self, row: Any, damping: Any, decay: Any, sharpness: Any) -> Any:
        return self._iterations(row, damping, decay * self._decayed, sharpness)

    def _iterations(self, row: Any, damping: Any, pulled: Any, sharpness: Any) -> Any:
        start = (row, damping, self.jnp.zeros_like(damping))

        def once(_: Any, now: Any) -> Any:
            return self._iteration(now[0], now[1], pulled, sharpness)

        with self.objective.full_precision():
            return self.jax.lax.fori_loop(0, BLOCK, once, start)

    def _iteration(self, row: Any, damping: Any, pulled: Any, sharpness: Any) -> Any:
        jnp = self.jnp

        def loss(row: Any) -> Any:
            return self.objective.loss(self.params(row), None, sharpness) + (pulled * row**2).sum() / 2

        A, b = self._system(row, sharpness)
        curvature, slope = A.T @ A + jnp.diag(pulled), A.T @ b + pulled * row
        diagonal = jnp.diag(curvature)
        floor = 1e-6 * diagonal.max() + 1e-12
        moved = row + jnp.linalg.solve(curvature + damping * jnp.diag(diagonal + floor), -slope)
        old, new = loss(row), loss(moved)
        better = new < old
        damping = jnp.clip(jnp.where(better, damping * 0.3, damping * 4), 1e-12, 1e8)
        return self._turned(jnp.where(better, moved, row)), damping, jnp.where(better, new, old)

    def _turned(self, row: Any) -> Any:
        if not self.surplus:
            return row
        params = self.params(row)
        W = params["W"]
        left, sizes, _ = self.jnp.linalg.svd(W.reshape(-1, W.shape[-1]), full_matrices=False)
        return self._flat(params | {"W": (left * sizes).reshape(W.shape)})

    def _system(self, row: Any, sharpness: Any) -> tuple[Any, Any]:
        """A and b of the class docstring, stacked over all terms."""
        jax, jnp, objective, task = self.jax, self.jnp, self.objective, self.objective.task

        def run(row: Any) -> Any:
            found = objective.forward(self.params(row), None, sharpness)
            return found, found

        (slopes, logit_slopes), (outs, logits) = jax.jacfwd(run, has_aux=True)(row)
        real = objective.array(task.real)
        tokens = real.at[:, 0].set(0.0)
        weight = jnp.sqrt(2 * objective.layer_weight * real / real.sum())[..., None]
        targets = [objective.array(target) for target in task.targets]
        A = [weight[..., None] * slope for slope in slopes]
        b = [weight * (out - target) for out, target in zip(outs, targets, strict=True)]
        share = jnp.sqrt(objective.output_weight * tokens / tokens.sum())[..., None]
        for output in task.outputs:
            z, slope = logits[..., output.start : output.stop], logit_slopes[..., output.start : output.stop, :]
            if output.categorical:
                p = jnp.maximum(jax.nn.softmax(z), 1e-12)
                y = jax.nn.one_hot(output.wanted, z.shape[-1], dtype=objective.dtype)
                mean = (p[..., None] * slope).sum(axis=-2, keepdims=True)
                A.append((share * jnp.sqrt(p))[..., None] * (slope - mean))
                b.append(share * (jnp.sqrt(p) - y / jnp.sqrt(p)))
            else:
                A.append(jnp.sqrt(2.0) * share[..., None] * slope)
                b.append(jnp.sqrt(2.0) * share * (z - objective.array(output.wanted)))
        return (
            jnp.concatenate([block.reshape(-1, row.size) for block in A]),
            jnp.concatenate([block.reshape(-1) for block in b]),
        )
