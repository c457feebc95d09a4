"""Bootstrap intervals of recovered shares: how often they hold the true share, in a simulation."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from tracr.graft.recovery import HostScore, Recovery

TRIALS, LONGEST, SHARED = 200, 6, 0.7


def covered(inputs: int, host: float, ablated: float, replaced: float) -> float:
    """How often the interval holds the true share, with inputs of 1 to 6 tokens whose errors go together."""
    rng, found = np.random.default_rng(1), 0
    for seed in range(TRIALS):
        scored = np.arange(LONGEST) < rng.integers(1, LONGEST + 1, inputs)[:, None]
        common = rng.normal(size=(inputs, 1))

        def score(right: float, scored: np.ndarray = scored, common: np.ndarray = common) -> HostScore:
            limit = NormalDist().inv_cdf(min(right, 1 - 1e-12))
            own = SHARED * common + np.sqrt(1 - SHARED**2) * rng.normal(size=scored.shape)
            return HostScore((own < limit) & scored, np.zeros(scored.shape))

        recovery = Recovery(scored, score(host), score(ablated), seed)
        interval = recovery.recovered(score(replaced))
        assert interval is not None
        found += interval.low <= (replaced - ablated) / (host - ablated) <= interval.high
    return found / TRIALS


@pytest.mark.slow
@pytest.mark.parametrize(("host", "ablated", "replaced"), [(0.98, 0.5, 0.9), (0.95, 0.7, 0.92), (0.9, 0.4, 0.45)])
def test_intervals_hold_the_true_share(host: float, ablated: float, replaced: float) -> None:
    """About 95 % of the intervals do, with 200 inputs and errors of each kind."""
    assert 0.91 <= covered(200, host, ablated, replaced) <= 0.99


@pytest.mark.slow
def test_intervals_are_too_narrow_where_errors_are_rare() -> None:
    """With one error in a hundred answers, 20 inputs often have none, and the interval is a point."""
    assert covered(20, 1.0, 0.4, 0.99) < 0.5
    assert 0.8 <= covered(200, 1.0, 0.4, 0.99) <= 0.95
