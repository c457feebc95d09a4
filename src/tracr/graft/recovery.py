"""How much of what a component does a replacement recovers, with bootstrap intervals over inputs.

The recovered share is (replaced - ablated) / (host - ablated), of the accuracy over all scored tokens, where ablated is
the host with the component's mean output at each position. An interval has the 2.5 % and the 97.5 % quantile over
draws of as many inputs as there are, with replacement; tokens of one input are drawn together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST", "HostScore", "Recovery", "ShareInterval", "recovered_loss"]

Array = NDArray[Any]
DRAWS = 1000
LEAST = 0.005  # an ablation that costs less accuracy than this leaves nothing to recover


@dataclass(frozen=True)
class ShareInterval:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_dict(self) -> dict[str, float]:
        """As plain numbers."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class HostScore:
    """Right answers (or shares of them over several trials) and losses of a model, [input, token]."""

    right: Array
    losses: Array


@dataclass(frozen=True, eq=False)
class Recovery:
    """The scores of a host, of its ablations, and of anything put in the component's place, on the same inputs."""

    scored: NDArray[np.bool_]
    host: HostScore
    ablated: HostScore
    seed: int

    @property
    def drawn(self) -> Array:
        """How often each input comes in each draw."""
        count = len(self.scored)
        return np.random.default_rng(self.seed).multinomial(count, np.full(count, 1 / count), size=DRAWS)

    def accuracy(self, score: HostScore) -> float:
        """The share of right answers over all scored tokens."""
        return float(score.right.sum() / max(1, self.scored.sum()))

    def loss(self, score: HostScore) -> float:
        """The mean loss over all scored tokens."""
        return float(score.losses.sum() / max(1, self.scored.sum()))

    @property
    def cost(self) -> float:
        """What the mean ablation costs in accuracy."""
        return self.accuracy(self.host) - self.accuracy(self.ablated)

    def recovered(self, score: HostScore, at: int | None = None) -> ShareInterval | None:
        """The recovered share of the accuracy, at all tokens or at one; `None` if the ablation costs nothing."""
        counts, (own, ablated, mine) = self._sums([self.host, self.ablated, score], at)
        if not counts.any() or own.sum() - ablated.sum() < LEAST * counts.sum():
            return None  # nothing is asked there, or nothing is lost
        drawn = self.drawn
        costs, gains = drawn @ (own - ablated), drawn @ (mine - ablated)
        shares = gains[costs > 0] / costs[costs > 0]
        value = (mine.sum() - ablated.sum()) / (own.sum() - ablated.sum())
        low, high = np.quantile(shares, [0.025, 0.975])
        return ShareInterval(float(value), float(low), float(high))

    def difference(self, first: HostScore, second: HostScore) -> ShareInterval:
        """By how much the first is right more often than the second."""
        counts, (one, other) = self._sums([first, second], None)
        drawn = self.drawn
        shares = drawn @ (one - other) / np.maximum(drawn @ counts, 1)
        low, high = np.quantile(shares, [0.025, 0.975])
        return ShareInterval(float((one - other).sum() / max(1, counts.sum())), float(low), float(high))

    def _sums(self, scores: list[HostScore], at: int | None) -> tuple[Array, list[Array]]:
        """The scored tokens of each input, and how many of them are right."""
        where = slice(None) if at is None else slice(at, at + 1)
        counts = self.scored[:, where].sum(axis=1).astype(np.float64)
        return counts, [one.right[:, where].sum(axis=1).astype(np.float64) for one in scores]


def recovered_loss(recovery: Recovery, score: HostScore) -> float | None:
    """The recovered share of the loss; `None` if the ablation costs none."""
    cost = recovery.loss(recovery.ablated) - recovery.loss(recovery.host)
    if cost <= 0:
        return None
    return (recovery.loss(recovery.ablated) - recovery.loss(score)) / cost
