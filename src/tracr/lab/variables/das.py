"""Distributed alignment search (Geiger et al. 2024): a subspace trained by interchange interventions.

With Q [d_model, k] orthonormal, the swapped stream is base + (source - base) Q Qᵀ. Q is the orthogonal factor of a
trained matrix, and k is the number of the variable's values minus one, at most `most`. `swap_training.py` has the loss.
Every place is trained; the one with the best interchange accuracy on training pairs is returned. At each place there
are `steps` forward and backward passes of a batch of pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.lab.variables.found import FoundVariable, LinearSubspace

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData

__all__ = ["das"]

Array = Any  # of JAX


def das(
    subject: Any, data: VariableData, *, steps: int = 150, rate: float = 0.05, most: int = 8, seed: int = 0
) -> dict[str, FoundVariable]:
    """The subspace of each variable. `rate` is Adam's."""
    need("jax", "jax")
    need("optax", "jax")
    from tracr.lab.variables.swap_training import SwapRecipe, best_trained

    rng = np.random.default_rng(seed)
    sizes = [min(most, question.values - 1, data.network.width) for question in data.questions]

    def start(place: str, width: int) -> list[dict[str, Any]]:
        columns = max(sizes)
        return [{"matrix": rng.normal(size=(width, columns)), "kept": np.arange(columns) < size} for size in sizes]

    def finish(trained: dict[str, Any], number: int) -> LinearSubspace:
        return LinearSubspace(np.linalg.qr(trained["matrix"])[0].T[: sizes[number]])

    return best_trained(data, _kind(), start, finish, SwapRecipe(steps, rate, seed))


def _kind() -> Any:
    from tracr.lab.variables.swap_training import SwapMap

    return SwapMap(_swap, _no_penalty)


def _swap(own: dict[str, Array], base: Array, source: Array, progress: Array) -> Array:
    import jax
    import jax.numpy as jnp

    basis = jnp.linalg.qr(own["matrix"])[0] * jax.lax.stop_gradient(own["kept"])
    return base + (source - base) @ basis @ basis.T


def _no_penalty(own: dict[str, Array], progress: Array) -> Array:
    return 0.0
