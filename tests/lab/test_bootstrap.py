"""The hierarchical bootstrap: what it estimates, and how wide its intervals are."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tracr.lab import hierarchical_bootstrap


def drawn_one_by_one(values: dict[str, list[float]], draws: int, rng: np.random.Generator) -> np.ndarray:
    """The same bootstrap, written as it is said: a draw of cases, then of values within each drawn case."""
    groups = list(values.values())
    found = []
    for _ in range(draws):
        cases = [groups[place] for place in rng.integers(len(groups), size=len(groups))]
        found.append(np.mean([np.mean(rng.choice(group, len(group))) for group in cases]))
    return np.array(found)


def test_it_is_the_bootstrap_that_is_described() -> None:
    """Its interval is that of draws made one by one, for cases of different sizes."""
    rng = np.random.default_rng(1)
    values = {str(case): rng.normal(rng.normal(), 2.0, 2 + case % 4).tolist() for case in range(12)}
    found = hierarchical_bootstrap(values, draws=20_000)
    low, high = np.quantile(drawn_one_by_one(values, 3_000, rng), [0.025, 0.975])
    assert found.mean == pytest.approx(np.mean([np.mean(group) for group in values.values()]))
    assert found.low == pytest.approx(low, abs=0.08)
    assert found.high == pytest.approx(high, abs=0.08)
    assert (found.cases, found.values) == (12, sum(map(len, values.values())))


def test_seeds_of_one_case_are_not_many_cases() -> None:
    """A thousand equal seeds of each of 4 cases leave the interval as wide as one seed of each."""
    means = {"a": 0.1, "b": 0.5, "c": 0.6, "d": 1.0}
    one, many = (hierarchical_bootstrap({name: [mean] * count for name, mean in means.items()}) for count in (1, 1_000))
    assert (many.mean, many.low, many.high) == pytest.approx((one.mean, one.low, one.high), abs=0.05)


def test_intervals_cover() -> None:
    """Of 200 samples of 30 cases with 3 seeds each, the interval holds the true mean in about 95 %."""
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(200):
        sample = {str(case): rng.normal(rng.normal(0.3, 1.0), 0.7, 3).tolist() for case in range(30)}
        found = hierarchical_bootstrap(sample, draws=300)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.3 <= found.high
    assert 0.9 <= hits / 200 <= 0.99


def test_few_values() -> None:
    """One case has no interval; a case without values does not count; no values are refused; draws are seeded."""
    assert str(hierarchical_bootstrap({"a": [0.5, 0.75], "b": []})) == "0.625"
    values = {"a": [0.5], "b": [0.25, 1.0], "c": [0.0]}
    first, again, other = (hierarchical_bootstrap(values, draws=50, seed=seed) for seed in (3, 3, 4))
    assert first == again != other
    with pytest.raises(tracr.TracrError, match="no values"):
        hierarchical_bootstrap({"a": []})
