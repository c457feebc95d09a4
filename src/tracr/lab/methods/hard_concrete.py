"""Masks that are trained: hard concrete gates (Louizos et al. 2018) on the edges of a transformer.

A gate with the parameter θ is z = min(1, max(0, σ((ln u - ln(1 - u) + θ) / β) (ζ - γ) + γ)), with u uniform in (0, 1),
β = 2/3, γ = -0.1 and ζ = 1.1. Readers see z times what was written plus 1 - z times the writer's output on the
corrupted input. Adam minimises, with a new draw of all gates in each step and for each pair,

    mean |m(L_z) - m(L)| / mean |m(L') - m(L)| + weight · mean P(z > 0),     P(z > 0) = σ(θ - β ln(-γ / ζ))

with m the metric and L_z, L, L' the logits with gates, on the clean inputs and on the corrupted ones. The parameters
start where σ(θ) (ζ - γ) + γ = 0.9, as in subnetwork probing (Cao et al. 2021).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from tracr.arguments import number, whole
from tracr.lab.methods.edge_network import EdgeNetwork, JaxSubject, Tree, masked_logits, metric_of
from tracr.lab.methods.passes import count_passes

__all__ = ["BETA", "GAMMA", "START", "ZETA", "train_gates"]

Array = Any  # of JAX
BETA, GAMMA, ZETA = 2 / 3, -0.1, 1.1
OPEN = (0.9 - GAMMA) / (ZETA - GAMMA)
START = math.log(OPEN / (1 - OPEN))
LEAST = 1e-4  # u is at least this, and at most 1 minus this


def train_gates(
    own: JaxSubject, gate_of: NDArray[np.int64], *, steps: int, rate: float, weight: float, seed: int
) -> NDArray[Any]:
    """The parameters of the trained gates; `gate_of` [writer, reader] has the number of each edge's gate, or -1."""
    steps, seed = whole("steps", steps, 1), whole("seed", seed)
    numbers = jnp.array([number("rate", rate, above=0), number("weight", weight, low=0)])
    start = jnp.full(int(gate_of.max(initial=-1)) + 1, START)
    tensors = own.written[0], own.metric, own.instead
    found = _train(own.network, steps, own.weights, tensors, jnp.asarray(gate_of), start, numbers, jax.random.key(seed))
    pairs = own.metric.shape[0]
    count_passes((steps + 2) * pairs, steps * pairs)
    return np.asarray(found, dtype=np.float64)


def _gates(theta: Array, key: Array, draws: int) -> Array:
    """Draws of the gates, [draw, gate]."""
    uniform = jax.random.uniform(key, (draws, *theta.shape), minval=LEAST, maxval=1 - LEAST)
    spread = jax.nn.sigmoid((jnp.log(uniform) - jnp.log1p(-uniform) + theta) / BETA)
    return jnp.clip(spread * (ZETA - GAMMA) + GAMMA, 0, 1)


@partial(jax.jit, static_argnames=("network", "steps"))
def _train(
    network: EdgeNetwork,
    steps: int,
    weights: Tree,
    tensors: tuple[Array, Array, Array],
    gate_of: Array,
    start: Array,
    numbers: Array,
    key: Array,
) -> Array:
    rate, weight = numbers
    shift = BETA * math.log(-GAMMA / ZETA)

    embedded, weighted, instead = tensors
    pairs = len(embedded)

    def metric(ablated: Array) -> Array:
        return metric_of(masked_logits(network, weights, embedded, instead, ablated), weighted)

    clean = metric(jnp.zeros((pairs, *gate_of.shape)))
    whole_change = jnp.abs(metric(jnp.ones((pairs, *gate_of.shape))) - clean).mean()
    scale = jnp.where(whole_change > 0, whole_change, 1)

    def loss(theta: Array, key: Array) -> Array:
        ablated = jnp.where(gate_of < 0, 0, 1 - _gates(theta, key, pairs)[:, gate_of])
        return jnp.abs(metric(ablated) - clean).mean() / scale + weight * jax.nn.sigmoid(theta - shift).mean()

    optimiser = optax.adam(rate)

    def step(state: tuple[Array, Any], key: Array) -> tuple[tuple[Array, Any], None]:
        theta, moments = state
        change, moments = optimiser.update(jax.grad(loss)(theta, key), moments)
        return (theta + change, moments), None

    (theta, _), _ = jax.lax.scan(step, (start, optimiser.init(start)), jax.random.split(key, steps))
    return theta
