"""A non-linear featuriser of large capacity: an invertible network, trained by interchange interventions.

The map φ is a fixed random rotation of the standardised stream, then `blocks` additive couplings (Dinh et al. 2015) of
its halves: a += f(b), b += g(a), with f and g MLPs of one hidden layer of `hidden` neurons. The swapped stream is
φ⁻¹(the first half of φ(source), the second half of φ(base)). Loss and places are as in DAS (`das.py`). Sutter et al.
(2025) showed that with maps of unlimited capacity a model can seem to run a program that it does not run: this
featuriser is here because it must fail the control.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.lab.variables.found import FoundVariable

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData

__all__ = ["InvertibleFeaturiser", "invertible"]

Tensor = Any  # of numpy or JAX
FIXED = ("rotation", "mean", "scale")


@dataclass(frozen=True, eq=False)
class InvertibleFeaturiser:
    """The first half of the features of an invertible network."""

    parameters: dict[str, Any] = field(repr=False)

    def features(self, stream: Any) -> Any:
        """The features that are swapped."""
        return _features(self.parameters, stream, np)[0]

    def swapped(self, base: Any, source: Any) -> Any:
        """The streams with the first features of `base` and the others of `source` exchanged."""
        return _stream(self.parameters, self.features(source), _features(self.parameters, base, np)[1], np)


def invertible(
    subject: Any,
    data: VariableData,
    *,
    steps: int = 400,
    rate: float = 0.005,
    blocks: int = 3,
    hidden: int = 64,
    seed: int = 0,
) -> dict[str, FoundVariable]:
    """The featuriser of each variable. `rate` is Adam's."""
    need("jax", "jax")
    need("optax", "jax")
    from tracr.lab.variables.swap_training import SwapMap, SwapRecipe, best_trained

    rng = np.random.default_rng(seed)

    def start(place: str, width: int) -> list[dict[str, Any]]:
        stream = data.network.streams(data.questions[0].ids)[place][:, 1:].reshape(-1, width)
        spread = max(float(stream.std()), 1e-6)
        return [
            {
                "rotation": np.linalg.qr(rng.normal(size=(width, width)))[0],
                "mean": stream.mean(axis=0),
                "scale": np.full((), spread),
                "f": _couplings(rng, blocks, width - width // 2, hidden, width // 2),
                "g": _couplings(rng, blocks, width // 2, hidden, width - width // 2),
            }
            for _ in data.questions
        ]

    def finish(trained: dict[str, Any], number: int) -> InvertibleFeaturiser:
        return InvertibleFeaturiser(trained)

    return best_trained(data, SwapMap(_swap, _no_penalty), start, finish, SwapRecipe(steps, rate, seed))


def _couplings(rng: np.random.Generator, blocks: int, given: int, hidden: int, made: int) -> tuple[Any, Any, Any]:
    """The weights of the MLPs of all blocks; they begin as almost nothing."""
    inner = rng.normal(size=(blocks, given, hidden)) * np.sqrt(2 / max(given, 1))
    return inner, rng.normal(size=(blocks, hidden)) * 0.5, rng.normal(size=(blocks, hidden, made)) * 0.01


def _mlp(weights: tuple[Tensor, Tensor, Tensor], block: int, given: Tensor, xp: Any) -> Tensor:
    return xp.maximum(given @ weights[0][block] + weights[1][block], 0) @ weights[2][block]


def _features(own: dict[str, Any], stream: Tensor, xp: Any) -> tuple[Tensor, Tensor]:
    """The two halves of the features."""
    turned = (stream - own["mean"]) / own["scale"] @ own["rotation"]
    half = turned.shape[-1] // 2
    first, second = turned[..., :half], turned[..., half:]
    for block in range(len(own["f"][0])):
        first = first + _mlp(own["f"], block, second, xp)
        second = second + _mlp(own["g"], block, first, xp)
    return first, second


def _stream(own: dict[str, Any], first: Tensor, second: Tensor, xp: Any) -> Tensor:
    """The stream that has these features."""
    for block in reversed(range(len(own["f"][0]))):
        second = second - _mlp(own["g"], block, first, xp)
        first = first - _mlp(own["f"], block, second, xp)
    turned = xp.concatenate([first, second], axis=-1)
    return turned @ own["rotation"].T * own["scale"] + own["mean"]


def _swap(own: dict[str, Any], base: Tensor, source: Tensor, progress: Tensor) -> Tensor:
    import jax
    import jax.numpy as jnp

    own = {name: jax.lax.stop_gradient(part) if name in FIXED else part for name, part in own.items()}
    return _stream(own, _features(own, source, jnp)[0], _features(own, base, jnp)[1], jnp)


def _no_penalty(own: dict[str, Any], progress: Tensor) -> Tensor:
    return 0.0
