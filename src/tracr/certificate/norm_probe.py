"""Probes layer norms for violations of what certificates of models with layer norms assume (`tracr_check/normed.py`).

A norm over D numbers with epsilon 2^80, and its root as the gain, gives x − m rounded once, for a number m that is
within (D + 8) u max |x| of the mean. m is seen where x is 0. The numbers are small enough for that epsilon. A probe can
find a violation; it cannot prove that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.extras import need
from tracr.model.variants.layer_norm import LayerNorm
from tracr_check import ARITHMETICS

__all__ = ["NormProbe", "numpy_norm", "probe_norm", "torch_norm"]

Array = NDArray[Any]
EPSILON = 2.0**80
SIZES = (2, 5, 13, 20, 64, 100, 257, 1000, 3000)
ROWS = 300


@dataclass(frozen=True)
class NormProbe:
    """What was measured of a layer norm: `mean`, the worst error of m as a fraction of its bound; how many were tried.

    `rounded` counts the results that are not x − m rounded once.
    """

    norm: str
    version: str
    dtype: str
    mean: float
    rounded: int
    tried: int

    @property
    def violations(self) -> list[str]:
        """What is violated, in sentences."""
        found = {
            f"the mean is off by {self.mean:.3g} times its bound": not self.mean <= 1,
            f"{self.rounded} of {self.tried} results are not x - mean rounded once": self.rounded > 0,
        }
        return [sentence for sentence, violated in found.items() if violated]

    def as_json(self) -> dict[str, Any]:
        """The measurements, and the violations."""
        mean = self.mean if np.isfinite(self.mean) else str(self.mean)
        return {**asdict(self), "mean": mean, "violations": self.violations}


@dataclass(frozen=True)
class Norm:
    """A layer norm to probe: a function of rows and of epsilon, with the root of epsilon as its gain."""

    name: str
    version: str
    dtype: str
    function: Callable[[Array, float], Array]


def numpy_norm(dtype: str = "float32") -> Norm:
    """The layer norm of `model.with_layer_norm()`, in numpy."""
    return Norm("numpy", np.__version__, dtype, lambda rows, epsilon: np.asarray(LayerNorm(epsilon)(rows, np)))


def torch_norm(dtype: str = "float32", device: str = "cpu") -> Norm:
    """torch's own layer norm, which GPT-2 uses."""
    torch = need("torch")

    def function(rows: Array, epsilon: float) -> Array:
        given, size = torch.tensor(rows, device=device), rows.shape[1]
        gain = torch.full((size,), epsilon**0.5, dtype=given.dtype, device=device)
        found = torch.nn.functional.layer_norm(given, (size,), gain, torch.zeros_like(gain), epsilon)
        return np.asarray(found.cpu().numpy())

    return Norm(f"torch {device}", torch.__version__, dtype, function)


def probe_norm(norm: Norm, seed: int = 0) -> NormProbe:
    """Probe a layer norm on rows as a stream may hold them: many zeros, and numbers that add up to nearly 0.

    >>> probe_norm(numpy_norm()).violations
    []
    """
    rng, one = np.random.default_rng(seed), ARITHMETICS[norm.dtype]
    worst, wrong, tried = 0.0, 0, 0
    for size in SIZES:
        x = (rng.random((ROWS, size)) * 2.0 ** rng.integers(-3, 8, (ROWS, 1))).astype(norm.dtype)
        x[rng.random(x.shape) < 0.5] = 0
        x[:, -1] = 0
        if size > 2:  # the balance; and, in a third of the rows, none
            x[::3, -2], x[1::3, -2] = -x[::3, :-2].sum(1), -x[1::3, :-2].sum(1)
        y = norm.function(x, EPSILON)
        mean = -y[:, -1:]
        exact = np.array([math.fsum(row) / size for row in x.tolist()])
        off = np.abs(exact - mean[:, 0].astype(np.float64))
        bound = (size + 8) * one.unit * np.abs(x).max(1) + one.tiny
        worst = float(np.maximum(worst, (off / bound).max()))
        wrong += int(np.count_nonzero(~(y == x - mean)))
        tried += y.size
    return NormProbe(norm.name, norm.version, norm.dtype, worst, wrong, tried)
