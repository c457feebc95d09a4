"""Trains sparse coders in JAX: any number of subjects, seeds and penalties in one compiled program.

The loss of a coder is |y - output|² + penalty, where y is the activation itself for an SAE. Penalties:

    l1        weight * Σ code                                        (Bricken et al. 2023)
    topk      none: k codes stay                                     (Gao et al. 2024)
    jumprelu  weight * the number of codes above their threshold     (Rajamanoharan et al. 2024)

Rows of W_dec are made unit vectors after every step of Adam. Activations are divided by their root mean squared length,
and the weights multiplied back at the end. Thresholds of jumprelu get their slope from a rectangle of width `BAND`: the
derivative of the step H(z - t) in t is -1/BAND where |z - t| < BAND/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from tracr.lab.features.coder import SparseCoder

__all__ = ["CoderRecipe", "train_coders"]

Array = Any  # of JAX
Tree = dict[str, Array]
BAND = 0.5
START = 0.3  # the first threshold of jumprelu


@dataclass(frozen=True)
class CoderRecipe:
    """How coders are trained: Adam, with a learning rate that falls as a cosine over the last half of the steps."""

    kind: str
    atoms: int
    steps: int = 2_000
    batch: int = 512
    rate: float = 3e-3
    precision: str = "highest"
    """Of products, as `jax.default_matmul_precision` takes it: some devices round to fewer bits by default."""


def train_coders(
    recipe: CoderRecipe,
    inputs: NDArray[Any],
    outputs: NDArray[Any],
    sparsities: Sequence[float],
    seeds: Sequence[int],
) -> list[list[SparseCoder]]:
    """Coders from inputs [subject, token, input] to outputs [subject, token, dimension], one for each sparsity:
    `found[subject][sparsity]`. Every subject has a seed."""
    scales = [np.sqrt((one**2).sum(axis=-1).mean(axis=1)) for one in (inputs, outputs)]
    scaled = [
        jnp.asarray(one / np.maximum(scale, 1e-12)[:, None, None], jnp.float32)
        for one, scale in zip((inputs, outputs), scales, strict=True)
    ]
    most = int(max(sparsities)) if recipe.kind == "topk" else 0
    given = jnp.asarray(np.array(sparsities), jnp.float32)
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    with jax.default_matmul_precision(recipe.precision):
        trained = _trained(recipe, most, *scaled, given, keys)
    weights = {name: np.asarray(array, dtype=np.float64) for name, array in trained.items()}
    return [
        [
            SparseCoder(recipe.kind, _unscaled(weights, subject, run, scales), float(sparsities[run]))
            for run in range(len(sparsities))
        ]
        for subject in range(len(inputs))
    ]


def _unscaled(weights: dict[str, NDArray[Any]], subject: int, run: int, scales: list[NDArray[Any]]) -> dict[str, Any]:
    """The weights of one coder for activations in their own units; codes have those of the outputs."""
    before, after = (float(max(scale[subject], 1e-12)) for scale in scales)
    own = {name: array[subject, run] for name, array in weights.items()}
    return {
        "W_enc": own["W_enc"] * after / before,
        "b_enc": own["b_enc"] * after,
        "W_dec": own["W_dec"],
        "b_dec": own["b_dec"] * after,
        "b_in": own["b_in"] * before,
        "threshold": np.exp(own["log_threshold"]) * after,
    }


@partial(jax.jit, static_argnames=("recipe", "most"))
def _trained(recipe: CoderRecipe, most: int, inputs: Array, outputs: Array, sparsities: Array, keys: Array) -> Tree:
    runs = jax.vmap(partial(_alone, recipe, most), in_axes=(None, None, 0, None))
    found: Tree = jax.vmap(runs, in_axes=(0, 0, None, 0))(inputs, outputs, sparsities, keys)
    return found


def _alone(recipe: CoderRecipe, most: int, inputs: Array, outputs: Array, sparsity: Array, key: Array) -> Tree:
    schedule = optax.join_schedules(
        [optax.constant_schedule(1.0), optax.cosine_decay_schedule(1.0, recipe.steps - recipe.steps // 2)],
        [recipe.steps // 2],
    )
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(recipe.rate), optax.scale_by_schedule(schedule))
    own = _start(recipe, inputs.shape[-1], outputs.shape[-1], key)

    def loss(own: Tree, x: Array, y: Array) -> Array:
        codes, penalty = _encoded(recipe.kind, most, own, x, sparsity)
        error = y - codes @ own["W_dec"] - own["b_dec"]
        return (error**2).sum(axis=-1).mean() + penalty

    def step(state: tuple[Tree, Any], key: Array) -> tuple[tuple[Tree, Any], None]:
        own, moments = state
        rows = jax.random.randint(key, (recipe.batch,), 0, len(inputs))
        change, moments = optimiser.update(jax.grad(loss)(own, inputs[rows], outputs[rows]), moments)
        own = optax.apply_updates(own, change)
        return ({**own, "W_dec": _unit(own["W_dec"])}, moments), None

    keys = jax.random.split(jax.random.fold_in(key, 1), recipe.steps)
    ((own, _), _) = jax.lax.scan(step, (own, optimiser.init(own)), keys)
    trained: Tree = own
    return trained


def _start(recipe: CoderRecipe, reads: int, writes: int, key: Array) -> Tree:
    """Random unit atoms; an SAE's encoder is the transpose of its decoder."""
    first, second = jax.random.split(key)
    atoms = _unit(jax.random.normal(first, (recipe.atoms, writes)))
    read = atoms if reads == writes else _unit(jax.random.normal(second, (recipe.atoms, reads)))
    return {
        "W_enc": read.T,
        "b_enc": jnp.zeros(recipe.atoms),
        "W_dec": atoms,
        "b_dec": jnp.zeros(writes),
        "b_in": jnp.zeros(reads),
        "log_threshold": jnp.full(recipe.atoms, jnp.log(START)),
    }


def _unit(rows: Array) -> Array:
    return rows / (jnp.linalg.norm(rows, axis=1, keepdims=True) + 1e-12)


def _encoded(kind: str, most: int, own: Tree, x: Array, sparsity: Array) -> tuple[Array, Array]:
    """The codes and the penalty."""
    before = (x - own["b_in"]) @ own["W_enc"] + own["b_enc"]
    if kind == "jumprelu":
        threshold = jnp.exp(own["log_threshold"])
        return _jump(before, threshold), sparsity * _above(before, threshold).sum(axis=-1).mean()
    codes = jax.nn.relu(before)
    if kind == "topk":
        least = _kth_largest(jax.lax.stop_gradient(codes), sparsity, most)
        return jnp.where(codes >= least, codes, 0.0), jnp.zeros(())
    return codes, sparsity * codes.sum(axis=-1).mean()


def _kth_largest(codes: Array, k: Array, most: int) -> Array:
    """The k-th largest code of each row, k <= most; 0 if fewer are positive. Equal codes count once.

    A few maxima cost less than `top_k`, which sorts whole rows on some devices.
    """
    least = jnp.full((*codes.shape[:-1], 1), jnp.inf)
    for number in range(most):
        lower = jnp.where(codes < least, codes, 0.0).max(axis=-1, keepdims=True)
        least = jnp.where(number < k, lower, least)
    return least


@jax.custom_vjp  # type: ignore[untyped-decorator]
def _above(z: Array, threshold: Array) -> Array:
    """1 where z is above its threshold, else 0."""
    return (z > threshold).astype(z.dtype)


def _near(z: Array, threshold: Array) -> Array:
    """1/BAND near the threshold, else 0: a wide derivative of the step."""
    return (jnp.abs(z - threshold) < BAND / 2).astype(z.dtype) / BAND


_above.defvjp(
    lambda z, threshold: (_above(z, threshold), (z, threshold)),
    lambda kept, slope: (jnp.zeros_like(slope), -(slope * _near(*kept)).sum(axis=0)),
)


@jax.custom_vjp  # type: ignore[untyped-decorator]
def _jump(z: Array, threshold: Array) -> Array:
    """z where it is above its threshold, else 0."""
    return jnp.where(z > threshold, z, 0.0)


_jump.defvjp(
    lambda z, threshold: (_jump(z, threshold), (z, threshold)),
    lambda kept, slope: (
        slope * (kept[0] > kept[1]),
        -(slope * kept[1] * _near(*kept)).sum(axis=0),
    ),
)
