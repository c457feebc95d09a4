"""The choice of parameters for the normal tier."""

from __future__ import annotations

import itertools

from tests.tiers import pairwise


def test_every_pair_of_values_is_in_the_normal_tier() -> None:
    """And every combination in one of the two tiers."""
    axes = (range(5), "abc", (True, False))
    found = pairwise(*axes)
    assert [one.values for one in found] == list(itertools.product(*axes))
    normal = [one.values for one in found if not one.marks]
    assert len(normal) == 5 * 3
    for fst, snd in itertools.combinations(range(3), 2):
        assert {(one[fst], one[snd]) for one in normal} == set(itertools.product(axes[fst], axes[snd]))
