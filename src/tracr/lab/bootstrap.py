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

import numpy as np

from tracr.arguments import whole
from tracr.errors import TracrError

__all__ = ["Estimate", "hierarchical_bootstrap"]

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
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=whole("draws", draws, 1))
    totals = np.zeros(len(times))
    for group, often in zip(groups, times.T, strict=True):
        # `often` draws of len(group) values each, as one draw of the numbers of times that each value comes
        chosen = rng.multinomial(often * len(group), np.full(len(group), 1 / len(group)))
        totals += chosen @ group / len(group)
    low, high = np.quantile(totals / len(groups), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(mean, float(low), float(high), len(groups), count)
