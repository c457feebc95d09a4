"""Intervals of mean scores by a hierarchical bootstrap: cases are drawn again, and within each case its values.

The estimate is the mean over cases of the mean over the values of a case (its seeds). A draw takes as many cases as
there are, with replacement, and from each drawn case as many values as it has, with replacement; a case drawn twice
draws its values twice. The interval goes from the 2.5 % to the 97.5 % quantile of the estimates of all draws. It says
how far the estimate would move with other cases and seeds of the same kind. With one case there is no interval, and
with fewer than about ten cases it is too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import whole
from tracr.errors import TracrError

__all__ = ["Estimate", "drawn_times", "hierarchical_bootstrap", "interval_of"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over cases, with its interval; `low` and `high` are `None` for one case."""

    mean: float
    low: float | None
    high: float | None
    cases: int
    values: int

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def hierarchical_bootstrap(values: Mapping[str, Sequence[float]], *, draws: int = 2_000, seed: int = 0) -> Estimate:
    """The mean of the means of the cases, with its 95 % interval; `values` has those of each case.

    >>> print(hierarchical_bootstrap({"a": [1.0, 1.0], "b": [0.5, 0.5], "c": [0.75]}))
    0.750 [0.500, 1.000]
    """
    groups = [np.asarray(group, dtype=np.float64) for group in values.values() if len(group)]
    if not groups:
        raise TracrError("there are no values to take the mean of", hint="pass at least one case with a value")
    mean, count = float(np.mean([group.mean() for group in groups])), sum(map(len, groups))
    if len(groups) == 1:
        return Estimate(mean, None, None, 1, count)
    drawn = drawn_times(tuple(map(len, groups)), whole("draws", draws, 1), seed)
    totals = sum(times @ group / len(group) for times, group in zip(drawn, groups, strict=True))
    return Estimate(mean, *interval_of(np.asarray(totals) / len(groups)), len(groups), count)


@lru_cache(maxsize=4)
def drawn_times(sizes: tuple[int, ...], draws: int, seed: int) -> tuple[NDArray[np.int64], ...]:
    """For each case with so many values: how often each value comes in each draw, [draw, value]."""
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=draws)
    # `often` draws of `size` values each, as one draw of the numbers of times that each value comes
    return tuple(
        rng.multinomial(often * size, np.full(size, 1 / size)) for size, often in zip(sizes, times.T, strict=True)
    )


def interval_of(estimates: NDArray[Any]) -> tuple[float, float]:
    """The interval that holds 95 % of the estimates of all draws."""
    low, high = np.quantile(estimates, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
