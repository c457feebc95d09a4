"""Conjunctions literal by literal: what is proved group by group is right, and mutants are rejected that way too."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tracr
from tests.certificate.check_cases import Exhaustive, Parsed, example, mutant
from tests.certificate.needles import SUM_OF_HEADS, Haystack, needle
from tests.tiers import slow
from tracr_check import groups, head, parts
from tracr_check.arithmetic import ARITHMETICS
from tracr_check.boxes import INF
from tracr_check.facts import Facts
from tracr_check.patterns import patterns
from tracr_check.scores import Vectors, beside, hulls, scores
from tracr_check.selection import Bounds
from tracr_check.verdict import Rejected

FLOAT32 = ARITHMETICS["float32"]
CONJUNCTIONS = ["sort_composite", *slow(["most_freq", "closer"])]


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Groups are used wherever there are several, however few the classes; the numbers of groups that heads had."""
    monkeypatch.setattr(groups, "FEW_CELLS", 0)
    found: list[int] = []

    def counting(*given: Any) -> list[groups.Group]:
        result = groups.fitting(*given)
        found.append(len(result))
        return result

    monkeypatch.setattr(head, "fitting", counting)
    return found


@pytest.mark.parametrize("name", CONJUNCTIONS)
def test_no_harmful_mutant_is_accepted_group_by_group(name: str, apart: list[int]) -> None:
    """The model is accepted; a changed weight that makes any answer wrong is rejected."""
    model = example(name, 2, 3)
    parsed, every = Parsed(model), Exhaustive(model)
    assert parsed.reason() == ""
    assert max(apart) > 1
    rng = np.random.default_rng(len(name))
    harmful = 0
    for _ in range(12):
        changed = mutant(parsed.weights, rng)
        if every.wrong(changed):
            harmful += 1
            assert parsed.reason(changed)
    assert harmful


@pytest.mark.parametrize("kind", ["reading", *slow(["pair"])])
def test_a_needle_in_a_conjunction_is_rejected_group_by_group(kind: str, apart: list[int]) -> None:
    """Wrong on one input of 4⁴⁰, in a head that is proved literal by literal."""
    model = tracr.compile(SUM_OF_HEADS, "abcd", 40, level=2)
    parsed = Parsed(model)
    assert parsed.reason() == ""
    assert max(apart) > 1
    weights = needle(Haystack.of(model), kind)
    assert weights is not None
    assert parsed.reason(weights)


@pytest.mark.parametrize("name", ["sort_composite", "most_freq"])
def test_patterns_of_groups_contain_those_of_all_classes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that occurs is missed."""
    compared = []

    def both(*given: Any) -> Any:
        with monkeypatch.context() as few:
            few.setattr(groups, "FEW_CELLS", 10**12)
            whole = patterns(*given)
        with monkeypatch.context() as many:
            many.setattr(groups, "FEW_CELLS", 0)
            parted = patterns(*given)
        listed, more = (set(zip(*(x.tolist() for x in (w, d, *m, c)), strict=True)) for w, d, m, c in (whole, parted))
        assert listed <= more
        compared.append(len(more))
        return whole

    monkeypatch.setattr(parts, "patterns", both)
    assert Parsed(example(name, 2, 4)).reason() == ""
    assert compared


@pytest.mark.parametrize("seed", range(20))
def test_scores_of_groups_add_up_in_any_order(seed: int) -> None:
    """The float32 score over the components of two groups, in a random order, lies in the sum of their bounds."""
    rng = np.random.default_rng(seed)
    whole = seed % 2 == 0

    def points(rows: int, width: int) -> Vectors:
        numbers = rng.integers(-300, 300, (rows, width)) if whole else rng.normal(size=(rows, width)) * 100
        exact = numbers.astype(np.float32).astype(np.float64)
        return Vectors(exact, exact, np.where(exact == 0, INF, 1.0 if whole else 2.0**-40))

    sides = [(points(3, width), points(4, width)) for width in (2, 5)]
    found = []
    for place, (q, k) in enumerate(sides):
        found.append(scores(q, k, np.zeros_like(q.lo), FLOAT32, beside([sides[1 - place]])))
    lo, hi = (found[0][end] + found[1][end] for end in (0, 1))
    if whole:
        assert (lo == hi).all()
    for row, column in itertools.product(range(3), range(4)):
        terms = [np.float32(a) * np.float32(b) for q, k in sides for a, b in zip(q.lo[row], k.lo[column], strict=True)]
        for order in (rng.permutation(len(terms)) for _ in range(10)):
            total = np.float32(0)
            for place in order:
                total = np.float32(total + terms[place])
            assert lo[row, column] <= total <= hi[row, column]


def test_rounding_beside_large_products_is_covered() -> None:
    """Small products of one group may be rounded beside large ones of another, which cancel."""
    small, one = np.full((1, 6), 2.0**-24 * (1 + 2**-10)), np.ones((1, 6))
    large, signs = np.array([[1.0, 1.0]]), np.array([[1.0, -1.0]])
    rough = [Vectors(x, x, np.zeros_like(x)) for x in (small, one, large, signs)]
    alone = scores(rough[0], rough[1], np.zeros((1, 6)), FLOAT32)
    first = scores(rough[0], rough[1], np.zeros((1, 6)), FLOAT32, beside([(rough[2], rough[3])]))
    second = scores(rough[2], rough[3], np.zeros((1, 2)), FLOAT32, beside([(rough[0], rough[1])]))
    total = np.float32(0)
    for term in (1.0, *small[0], -1.0):
        total = np.float32(total + np.float32(term))
    assert first[0] + second[0] <= total <= first[1] + second[1]
    assert not alone[0] <= total <= alone[1]


def test_products_with_a_zero_round_nothing() -> None:
    """Beside one-hot queries and keys, however wide, a sum has one more term that may round."""
    codes, large = np.eye(200) * (1 + 2**-20), np.array([[2.0**20, -(2.0**20)]])
    one_hot, other = Vectors(codes, codes, np.zeros_like(codes)), Vectors(large, large, np.zeros_like(large))
    ones = Vectors(np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2)))
    lo, hi = scores(other, ones, np.zeros((1, 2)), FLOAT32, beside([(one_hot, one_hot)]))
    assert 2.0 * FLOAT32.unit * 2.0**21 < hi[0, 0] - lo[0, 0] < 8 * FLOAT32.unit * 2.0**21
    for order in itertools.permutations([np.float32(2**20), np.float32(-(2**20)), np.float32(codes[0, 0] ** 2)]):
        total = np.float32(np.float32(order[0] + order[1]) + order[2])
        assert lo[0, 0] <= float(total) - codes[0, 0] ** 2 <= hi[0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_two_factors(seed: int) -> None:
    """Against all keys one by one: the selected, the others, and both."""
    rng = np.random.default_rng(seed)
    tables = [(rng.normal(size=(2, 4)), rng.random((2, 4)) < 0.5) for _ in range(2)]
    single = []
    for score, chosen in tables:
        kept, others = np.where(chosen, score, INF), np.where(chosen, -INF, score)
        zero = np.zeros(2)
        most = np.where(chosen, score, -INF).max(1)
        single.append(Bounds(kept.min(1), most, others.max(1), score.max(1), zero, zero, zero))
    both = single[0].and_(single[1])
    for place, (a, b) in enumerate(itertools.product(range(2), range(2))):
        total = tables[0][0][a][:, None] + tables[1][0][b][None]
        chosen = tables[0][1][a][:, None] & tables[1][1][b][None]
        assert both.any[place] >= total.max()
        if chosen.any():
            assert both.kept_lo[place] <= total[chosen].min()
            assert both.kept_hi[place] >= total[chosen].max()
        if not chosen.all():
            assert both.other[place] >= total[~chosen].max()


def test_linked_variables_are_in_one_group() -> None:
    """A common variable, or one that is a function of another's, links; statements about nothing come first."""
    program = Parsed(example("sort_composite", 2, 4)).program()
    token, position = ("T",), ("I",)
    tokens = next(number for number, sop in program.sops.items() if sop.kind == "tokens")
    links = [
        (frozenset(token), frozenset(token)),
        (frozenset(position), frozenset[Any]()),
        (frozenset[Any]((tokens,)), frozenset[Any]()),
        (frozenset[Any](), frozenset[Any]()),
    ]
    found = groups.grouped(program, links)
    assert sorted(sorted(one.links) for one in found) in ([[0, 2, 3], [1]], [[0, 2], [1, 3]])


@pytest.mark.parametrize("name", ["reverse", *slow(["shift_by", "hist2"])])
def test_no_harmful_mutant_is_accepted_with_merged_classes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes with nearly equal vectors are one class, however few there are; the model itself is accepted."""
    monkeypatch.setattr(head, "FEW_CELLS", 0)
    model = example(name, 2, 3)
    parsed, every = Parsed(model), Exhaustive(model)
    assert parsed.reason() == ""
    rng = np.random.default_rng(2)
    harmful = 0
    for _ in range(16):
        changed = mutant(parsed.weights, rng)
        if every.wrong(changed):
            harmful += 1
            assert parsed.reason(changed)
    assert harmful


def test_hulls_contain_the_boxes_of_their_rows() -> None:
    """Each row lies in the hull that it is said to; rows with other codes, or far away, stay apart."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, 400)
    middle, radius = codes[:, None] + rng.normal(0, 1e-3, (400, 2)), rng.uniform(0, 1e-2, (400, 2))
    middle[:, 1] *= 50
    first, kinds, found = hulls(Vectors(middle - radius, middle + radius, 0 * middle), [codes])
    assert len(first) < 100
    assert (found.lo[kinds] <= middle - radius).all()
    assert (found.hi[kinds] >= middle + radius).all()
    assert (codes[first[kinds]] == codes).all()
    assert (found.hi - found.lo).max() < 0.1
    points = Vectors(middle, middle, 0 * middle)
    assert len(hulls(points, [codes])[0]) == len(np.unique(middle, axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sort", "sort_freq", "pair_balance"])
def test_long_sorts_and_means_are_accepted(name: str) -> None:
    """Eleven heads that count parts of a rank; PAD whose keys are in two groups, far below exact scores of 10⁹; means.

    The means need both: finer cells, and additions that are off by half of what each could be.
    """
    assert Parsed(example(name, 2, 1000)).reason() == ""


def test_a_whole_of_too_many_parts_is_rejected() -> None:
    """Their number is limited: the factors are found by least squares, whose time grows with its square."""
    parsed = Parsed(example("hist"))
    program = parsed.program()
    width = next(sop for sop in program.sops.values() if sop.kind == "width")
    with pytest.raises(Rejected, match="17 parts"):
        parts.Parts(program, Facts(program)).prove_whole(width, [f"c0.{place}" for place in range(17)])


@pytest.mark.slow
def test_long_reversals_are_accepted() -> None:
    """The queries depend on position and length, 20,100 joint values, but their vectors on the difference only."""
    assert Parsed(example("reverse", 2, 200)).reason() == ""
