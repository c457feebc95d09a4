"""Boundless DAS (Wu et al. 2023): an orthogonal basis of the whole stream and the number of its directions are trained.

With R [d_model, d_model] orthogonal and a boundary b in (0, 1), direction i is swapped with the weight
m_i = σ((b d_model - i - 1/2) / T): the swapped stream is base + (source - base) R diag(m) Rᵀ. T falls from 4 to 0.2
dimensions during training, and the loss has the penalty `weight` b. Afterwards the directions with m_i > 1/2 are kept.
The rest is as in DAS (`das.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.lab.variables.found import FoundVariable, LinearSubspace

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData

__all__ = ["boundless_das"]

Array = Any  # of JAX
WARM, COLD = 4.0, 0.2  # dimensions


def boundless_das(
    subject: Any, data: VariableData, *, steps: int = 150, rate: float = 0.05, weight: float = 0.2, seed: int = 0
) -> dict[str, FoundVariable]:
    """The subspace of each variable. `rate` is Adam's."""
    need("jax", "jax")
    need("optax", "jax")
    from tracr.lab.variables.swap_training import SwapMap, SwapRecipe, best_trained

    rng = np.random.default_rng(seed)

    def start(place: str, width: int) -> list[dict[str, Any]]:
        return [
            {"matrix": rng.normal(size=(width, width)), "boundary": np.zeros(()), "weight": np.full((), weight)}
            for _ in data.questions
        ]

    def finish(trained: dict[str, Any], number: int) -> LinearSubspace:
        boundary = len(trained["matrix"]) / (1 + np.exp(-trained["boundary"]))
        kept = np.arange(len(trained["matrix"])) + 0.5 < boundary
        return LinearSubspace(np.linalg.qr(trained["matrix"])[0].T[kept])

    return best_trained(data, SwapMap(_swap, _penalty), start, finish, SwapRecipe(steps, rate, seed))


def _swap(own: dict[str, Array], base: Array, source: Array, progress: Array) -> Array:
    import jax
    import jax.numpy as jnp

    width = base.shape[-1]
    temperature = WARM * (COLD / WARM) ** progress
    mask = jax.nn.sigmoid((jax.nn.sigmoid(own["boundary"]) * width - jnp.arange(width) - 0.5) / temperature)
    basis = jnp.linalg.qr(own["matrix"])[0]
    return base + ((source - base) @ basis * mask) @ basis.T


def _penalty(own: dict[str, Array], progress: Array) -> Array:
    import jax

    return jax.lax.stop_gradient(own["weight"]) * jax.nn.sigmoid(own["boundary"])
