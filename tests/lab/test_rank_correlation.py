"""Spearman's rank correlation, and its bootstrap over cases and seeds, against slow and plain code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracr.lab.reporting.rank_correlation import rank_correlation, spearman


def plain(points: list[tuple[float, float]]) -> float:
    """Pearson's correlation of mean ranks, one point at a time."""

    def ranks(values: list[float]) -> list[float]:
        return [
            sum(other < one for other in values) + (sum(other == one for other in values) + 1) / 2 for one in values
        ]

    return float(np.corrcoef(ranks([x for x, _ in points]), ranks([y for _, y in points]))[0, 1])


NUMBERS = st.integers(0, 6).map(float)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
def test_spearman(points: list[tuple[float, float]]) -> None:
    """Ties included; undefined without three points, or if one side is constant."""
    found = spearman(points)
    constant = min(len({x for x, _ in points}), len({y for _, y in points})) < 2
    if len(points) < 3 or constant:
        assert found is None
    else:
        assert found == pytest.approx(plain(points), abs=1e-9)


def test_its_interval_is_that_of_draws_made_one_by_one() -> None:
    """Cases are drawn, then seeds of each; all points of a seed are drawn together."""
    rng = np.random.default_rng(0)
    points = {}
    for case in range(8):
        shift = rng.normal()
        for seed in range(2 + case % 2):
            xs = rng.normal(size=5) + shift
            points[str(case), seed] = [(round(float(x), 1), round(float(x + rng.normal()), 1)) for x in xs]
    found = rank_correlation(points, draws=4_000)
    assert found is not None
    assert found.mean == pytest.approx(plain([point for group in points.values() for point in group]))
    seeds = {case: [seed for one, seed in points if one == case] for case, _ in points}
    drawn = []
    for _ in range(400):
        sample: list[tuple[float, float]] = []
        for case in rng.choice(list(seeds), len(seeds)).tolist():
            for seed in rng.choice(seeds[case], len(seeds[case])).tolist():
                sample += points[case, seed]
        drawn.append(plain(sample))
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.05)
    assert found.high == pytest.approx(high, abs=0.05)
    assert (found.cases, found.values) == (8, 100)


def test_no_interval() -> None:
    """One case has none; neither has a correlation that some draws leave undefined."""
    line = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    one = rank_correlation({("a", 0): line, ("a", 1): line})
    assert one is not None
    assert (one.mean, one.low, one.cases) == (1.0, None, 1)
    some = rank_correlation({("a", 0): [(1.0, 1.0)] * 3, ("b", 0): [(2.0, 2.0)] * 3})
    assert some is not None
    assert (some.mean, some.low, some.cases) == (1.0, None, 2)
    assert rank_correlation({("a", 0): [(1.0, 1.0)] * 3}) is None
