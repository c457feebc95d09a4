"""The choice of parameters for the normal tier, and the end of the slow one."""

from __future__ import annotations

import itertools
import math
import os
import time

import pytest

from tests import tiers
from tests.tiers import in_turn, mostly_slow, pairwise, some_levels, usual
from tracr.ir.options import LEVELS

pytestmark = pytest.mark.repository


def test_the_tiers_have_pairs_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow: all pairs of any two lists. Normal: all values of the first, all pairs of the others. Long: everything."""
    axes = (range(9), "abc", (True, False))
    monkeypatch.setattr(tiers, "LONG", False)
    found = [one.values for one in pairwise(*axes)]
    normal = [one.values for one in pairwise(*axes) if not one.marks]
    assert (len(found), len(normal)) == (9 * 3, 9)
    for fst, snd in itertools.combinations(range(3), 2):
        assert {(one[fst], one[snd]) for one in found} == set(itertools.product(axes[fst], axes[snd]))
    assert {one[0] for one in normal} == set(axes[0])
    assert {one[1:] for one in normal} == set(itertools.product(*axes[1:]))
    monkeypatch.setattr(tiers, "LONG", True)
    assert sorted(one.values for one in pairwise(*axes)) == sorted(itertools.product(*axes))
    assert normal == [one.values for one in pairwise(*axes) if not one.marks]


def test_rows_take_their_turns_at_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One each in the normal tier, or in the slow tier; different ones if it starts elsewhere."""
    monkeypatch.setattr(tiers, "LONG", False)
    grid = mostly_slow(range(4), "abc")
    assert [one.values for one in grid if not one.marks] == in_turn(range(4), "abc")
    assert {one.values for one in grid if one.marks} == {*in_turn(range(4), "abc", 1)}
    assert [one.values for one in mostly_slow(range(4), "ab")] == list(itertools.product(range(4), "ab"))
    assert not {*in_turn(range(4), "ab")} & {*in_turn(range(4), "ab", 1)}
    assert usual(2, long=5) == 2
    monkeypatch.setattr(tiers, "LONG", True)
    assert in_turn(range(4), "ab") == list(itertools.product(range(4), "ab"))
    assert [one.values for one in mostly_slow(range(4), "abc")] == list(itertools.product(range(4), "abc"))
    assert [one.values for one in mostly_slow(range(4), "abc") if not one.marks] == [
        one.values for one in grid if not one.marks
    ]
    assert usual(2, long=5) == 5


def test_many_programs_take_their_turns_at_the_levels() -> None:
    """Each level has its share of any 24 programs, of every remainder; three of them are at all levels."""
    found = [(number, level) for number in range(24) for level in some_levels(number)]
    assert [sum(level == one for _, level in found) for one in LEVELS] == [10, 10, 10]
    assert sum(len(some_levels(number)) == 3 for number in range(24)) == 3
    assert {(number % 8, level) for number, level in found} == {*itertools.product(range(8), LEVELS)}


def asks_for_torch() -> None:
    pytest.importorskip("torch")


def test_tests_that_ask_for_a_library_are_marked(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one is not, until it asks."""
    (settings,) = (one for one in request.config.pluginmanager.get_plugins() if hasattr(one, "LAST_START"))
    assert not request.node.get_closest_marker("optional")
    monkeypatch.setattr(request.node, "obj", asks_for_torch)
    settings.pytest_collection_modifyitems([request.node])
    assert request.node.get_closest_marker("optional")


def test_slow_tests_are_left_out_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Only slow ones, and only if a time is given."""
    (settings,) = (one for one in request.config.pluginmanager.get_plugins() if hasattr(one, "LAST_START"))
    assert math.isinf(settings.LAST_START) or "TRACR_MINUTES" in os.environ
    monkeypatch.setenv("TRACR_MINUTES", "3")
    monkeypatch.setattr(settings, "LAST_START", time.monotonic())
    settings.pytest_runtest_setup(request.node)
    request.node.add_marker("slow")
    with pytest.raises(pytest.skip.Exception, match="3 minutes"):
        settings.pytest_runtest_setup(request.node)
    monkeypatch.setattr(settings, "LAST_START", time.monotonic() + 100)
    settings.pytest_runtest_setup(request.node)
