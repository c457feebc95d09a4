"""Draws the features of tokens: how many fire, and how much they fire together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "drawn_sets"]

BLOCK = 4
"""Features that fire together, if there is a correlation: 0 to 3, 4 to 7, ..."""


def drawn_sets(
    tokens: int, features: int, density: float, correlation: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which features each token has [token, feature].

    Every feature fires with the probability `density`. With the probability √correlation it copies a coin of its block,
    which has the same probability; otherwise it has a coin of its own. Two features of one block then have the
    correlation c: the covariance is c p (1 - p), for both copy the coin with the probability c. Features of different
    blocks are independent. A feature that no token has, or that is a weighted sum of earlier ones on all tokens, is
    given to more tokens, drawn at random: the compiler would not store it.

    >>> found = drawn_sets(20_000, 8, 0.1, 0.5, np.random.default_rng(0))
    >>> abs(np.corrcoef(found.T)[0, [1, 3, 4]]).round(1).tolist(), found.mean().round(2).item()
    ([0.5, 0.5, 0.0], 0.1)
    """
    coins = rng.random((tokens, -(-features // BLOCK))) < density
    copies = rng.random((tokens, features)) < np.sqrt(correlation)
    own = rng.random((tokens, features)) < density
    found = np.where(copies, coins[:, np.arange(features) // BLOCK], own)
    while len(alike := _without_meaning(found)):
        found[rng.integers(tokens, size=len(alike)), alike] = True
    return np.asarray(found)


def _without_meaning(found: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The features that are weighted sums of earlier ones."""
    return np.flatnonzero(np.abs(np.diag(np.linalg.qr(found.astype(np.float64), mode="r"))) < 1e-9)
