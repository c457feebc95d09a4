"""Scores of rankings, compared with their definitions by brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tracr.ground_truth.scores import (
    EdgeKey,
    area_under_curve,
    average_precision,
    precision_at_size,
    score_edges,
)

ABSENT = -np.inf


def key(number: int) -> EdgeKey:
    return f"w{number}", f"r{number}"


def drawn(seed: int) -> tuple[list[float], list[float]]:
    """Numbers of needed and inert edges with many ties; some edges have none."""
    rng = np.random.default_rng(seed)
    values = [ABSENT, -1.0, 0.0, 0.5, 2.0][int(rng.integers(2)) :]
    return tuple(rng.choice(values, size=int(rng.integers(1, 5))).tolist() for _ in range(2))


def tops(needed: list[float], inert: list[float]) -> list[set[int]]:
    """The first |needed| edges that have a number, for every way to break ties; needed edges come first in number."""
    numbers = [*needed, *inert]
    orders = itertools.permutations(range(len(numbers)))
    sorted_ones = [one for one in orders if all(numbers[x] >= numbers[y] for x, y in itertools.pairwise(one))]
    return [{edge for edge in one[: len(needed)] if numbers[edge] != ABSENT} for one in sorted_ones]


@pytest.mark.parametrize("seed", range(40))
def test_scores_are_their_definitions(seed: int) -> None:
    """AUROC counts pairs; precision at size is a mean over all ways to break ties; the worst counts for the rest."""
    needed, inert = drawn(seed)
    wins = [Fraction(1 if p > n else 0) + Fraction(int(p == n), 2) for p in needed for n in inert]
    assert area_under_curve(needed, inert) == pytest.approx(float(sum(wins) / len(wins)))
    size = len(needed)
    ways, true = tops(needed, inert), set(range(size))
    assert precision_at_size(needed, inert) == pytest.approx(np.mean([len(top & true) / size for top in ways]))
    found = {key(place): number for place, number in enumerate([*needed, *inert]) if number != ABSENT}
    keys = [key(place) for place in range(size + len(inert))]
    scores = score_edges(found, keys[:size], keys[size:], as_set=False)
    assert scores.exact == all(top == true for top in ways)
    assert set(scores.missed) == {key(edge) for top in ways for edge in true - top}
    assert set(scores.extra) == {key(edge) for top in ways for edge in top - true}
    if scores.exact:
        assert (scores.auroc, scores.average_precision, scores.precision_at_size) == (1, 1, 1)


@pytest.mark.parametrize("seed", range(40))
def test_average_precision_takes_ties_together(seed: int) -> None:
    """The sum over thresholds: recall gained times precision."""
    needed, inert = drawn(seed)
    total, before = 0.0, 0.0
    for threshold in sorted({*needed, *inert}, reverse=True):
        hits = sum(number >= threshold for number in needed)
        taken = hits + sum(number >= threshold for number in inert)
        total += (hits / len(needed) - before) * hits / taken
        before = hits / len(needed)
    assert average_precision(needed, inert) == pytest.approx(total)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_scores_are_those_of_scikit_learn(seed: int) -> None:
    """AUROC and average precision, with edges without a number below all others."""
    metrics = pytest.importorskip("sklearn.metrics")
    needed, inert = drawn(seed)
    numbers = np.array([*needed, *inert])
    numbers[numbers == ABSENT] = -2
    true = [1] * len(needed) + [0] * len(inert)
    assert area_under_curve(needed, inert) == pytest.approx(metrics.roc_auc_score(true, numbers))
    assert average_precision(needed, inert) == pytest.approx(metrics.average_precision_score(true, numbers))


def test_undefined_scores_are_none() -> None:
    """Without needed edges nothing is defined; without inert ones AUROC is not."""
    nothing = score_edges({}, [], [key(0)], as_set=True)
    scores = (nothing.auroc, nothing.average_precision, nothing.precision_at_size, nothing.exact)
    assert scores == (None, None, None, None)
    full = score_edges({key(0): 1.0}, [key(0)], [], as_set=False)
    assert (full.auroc, full.average_precision, full.exact) == (None, 1.0, True)


@pytest.mark.parametrize(
    ("found", "missed", "extra", "exact"),
    [
        ({0, 1}, set(), set(), True),
        ({0}, {1}, set(), False),
        ({0, 1, 2}, set(), {2}, False),
        (set(), {0, 1}, set(), False),
        ({2, 3}, {0, 1}, {2, 3}, False),
    ],
)
def test_sets(found: Any, missed: Any, extra: Any, exact: bool) -> None:
    """Edges 0 and 1 are needed: missed and extra edges are the differences of the sets."""
    scores = score_edges(dict.fromkeys(map(key, found), 1.0), [key(0), key(1)], [key(2), key(3)], as_set=True)
    assert (set(scores.missed), set(scores.extra)) == (set(map(key, missed)), set(map(key, extra)))
    assert scores.exact == exact


@pytest.mark.parametrize(
    ("numbers", "missed", "extra"),
    [
        ((3, 2, 1, 0), set(), set()),
        ((3, 1, 1, 0), {1}, {2}),  # a tie at the boundary counts against the method
        ((1, 1, 1, 1), {0, 1}, {2, 3}),
        ((3, None, 2, None), {1}, {2}),
        ((3, None, None, None), {1}, set()),  # absent edges are not found, also not as extra ones
    ],
)
def test_numbers(numbers: tuple[float | None, ...], missed: Any, extra: Any) -> None:
    """The two largest of four numbers are found."""
    found = {key(place): float(number) for place, number in enumerate(numbers) if number is not None}
    scores = score_edges(found, [key(0), key(1)], [key(2), key(3)], as_set=False)
    assert (set(scores.missed), set(scores.extra)) == (set(map(key, missed)), set(map(key, extra)))
