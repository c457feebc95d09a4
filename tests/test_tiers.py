"""The choice of parameters for the normal tier."""

from __future__ import annotations

import itertools

from tests.tiers import pairwise, some_levels
from tracr.ir.options import LEVELS


def test_every_pair_of_values_is_in_the_normal_tier() -> None:
    """And every combination in one of the two tiers."""
    axes = (range(5), "abc", (True, False))
    found = pairwise(*axes)
    assert [one.values for one in found] == list(itertools.product(*axes))
    normal = [one.values for one in found if not one.marks]
    assert len(normal) == 5 * 3
    for fst, snd in itertools.combinations(range(3), 2):
        assert {(one[fst], one[snd]) for one in normal} == set(itertools.product(axes[fst], axes[snd]))


def test_many_programs_take_their_turns_at_the_levels() -> None:
    """Each level has its share of any 24 programs, of every remainder; three of them are at all levels."""
    found = [(number, level) for number in range(24) for level in some_levels(number)]
    assert [sum(level == one for _, level in found) for one in LEVELS] == [10, 10, 10]
    assert sum(len(some_levels(number)) == 3 for number in range(24)) == 3
    assert {(number % 8, level) for number, level in found} == {*itertools.product(range(8), LEVELS)}
