"""The lemmas about rounding and ranges against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tracr_check.additions import Added, _column, product_error
from tracr_check.arithmetic import ARITHMETICS
from tracr_check.boxes import (
    Boxes,
    State,
    exactly,
    grid_of,
    natural,
    product_grid,
    read_boxes,
    rounded,
)
from tracr_check.mlp import _directions
from tracr_check.piecewise import Relus
from tracr_check.selection import Selection

FLOAT32 = ARITHMETICS["float32"]


def test_cast_rounds_to_nearest() -> None:
    """bfloat16 keeps 8 bits, ties to even."""
    cast = ARITHMETICS["bfloat16"].cast
    assert cast(np.array([1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8])).tolist() == [1.0, 1.0, 1 + 2**-6]
    assert cast(np.array([1 + 3 * 2**-9])).tolist() == [1 + 2**-7]


def summed(products: NDArray[np.float32], rng: np.random.Generator) -> float:
    """A sum in float32 in a random order."""
    terms = [np.float32(one) for one in rng.permutation(products)]
    while len(terms) > 1:
        first, second = sorted(rng.choice(len(terms), 2, replace=False).tolist())
        terms[first] = np.float32(terms[first] + terms[second])
        del terms[second]
    return float(terms[0])


@pytest.mark.parametrize("seed", range(40))
def test_sums_in_any_order_stay_within_the_bound(seed: int) -> None:
    """`rounded` bounds a float32 sum in any order; a sum that it calls exact is exact."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 20))
    scale = 2.0 ** rng.integers(-8, 8)
    whole = rng.integers(-40, 40, (2, count)) * scale
    x, w = np.asarray(whole if seed % 2 else rng.normal(size=(2, count)), dtype=np.float32)
    read = read_boxes(exactly(x.astype(np.float64)[None]), w.astype(np.float64)[:, None])
    off = float(rounded(read, FLOAT32)[0, 0])
    true = float(x.astype(np.float64) @ w.astype(np.float64))
    for _ in range(10):
        computed = summed(x * w, rng)
        assert abs(computed - true) <= off
        assert read.lo[0, 0] - off <= computed <= read.hi[0, 0] + off


def test_reads_contain_every_stream() -> None:
    """Sums over boxes lie in what is read, and partial sums between -down and up."""
    rng = np.random.default_rng(3)
    lo = rng.normal(size=(4, 6))
    hi = lo + rng.random((4, 6))
    boxes = Boxes(np.arange(6), lo, hi, np.zeros((4, 6)))
    weights = rng.normal(size=(6, 5))
    read = read_boxes(boxes, weights)
    for _ in range(200):
        x = lo + (hi - lo) * rng.integers(0, 2, lo.shape)
        found = x @ weights
        assert ((read.lo <= found) & (found <= read.hi)).all()
        partial = x[:, :3] @ weights[:3]
        assert ((-read.down <= partial) & (partial <= read.up)).all()


def test_grids_of_large_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the products are too many, their grids are found for all values together: none is too large."""
    rng = np.random.default_rng(5)
    left, right = (rng.choice([0.0, 0.25, 1.0, 8.0, np.inf], shape) for shape in ((4, 3), (3, 5)))
    exact = product_grid(left, right)
    monkeypatch.setattr("tracr_check.boxes.CELLS", right.size)
    bound = product_grid(left, right)
    assert (bound <= exact).all()
    assert (bound == bound[:1]).all()


def test_grids() -> None:
    """Floats of some bits in a range are multiples of its natural grid."""
    rng = np.random.default_rng(1)
    lo = rng.uniform(0.01, 3.0, 200)
    hi = lo + rng.uniform(0.0, 0.5, 200)
    grid = natural(lo, hi, 24)
    between = np.float64(np.float32(lo + (hi - lo) * 0.7))
    assert ((between / grid) % 1 == 0).all()
    assert (grid_of(between) >= grid).all()


@pytest.mark.parametrize("seed", range(30))
def test_ranges_of_relus(seed: int) -> None:
    """No value inside an interval is outside the range; a flat piece is a point."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 7))
    w, b, c = rng.normal(size=(3, count)).astype(np.float32).astype(np.float64)
    relus = Relus(w, b, c)
    lo = rng.normal(size=12)
    hi = lo + rng.random(12) * (seed % 3)
    low, high = relus.range(lo, hi)
    for part in np.linspace(0.0, 1.0, 41):
        value = relus.value(lo + (hi - lo) * part)
        assert ((low <= value + 1e-15) & (value <= high + 1e-15)).all()


def test_a_staircase_is_flat() -> None:
    """Between its kinks a step is exactly 1, whatever the error of the number."""
    step = Relus(np.array([64.0, 64.0]), np.array([-31.0, -33.0]), np.array([0.5, -0.5]))
    low, high = step.range(np.array([0.6, 0.1, 0.4]), np.array([0.9, 0.4, 0.6]))
    assert (low[:2] == [1.0, 0.0]).all()
    assert (high[:2] == [1.0, 0.0]).all()
    assert low[2] <= 0.0
    assert high[2] >= 1.0


@pytest.mark.parametrize("weight", [None, 1.609375, 9.0])
def test_weights_of_softmax_stay_within_the_bound(weight: float | None) -> None:
    """Computed weights against (1 or C) / (w + C), in float32 and random orders, with scores that differ a little."""
    rng = np.random.default_rng(4)
    for spread in (0.0, 1e-6, 1e-3):
        selection = Selection(spread, None if weight is None else (weight - spread, weight + spread), True, False)
        for _ in range(60):
            count = int(rng.integers(1, 40))
            scores = rng.uniform(0, spread, count).astype(np.float32)
            ideal = np.ones(count)
            if weight is not None:
                scores, ideal = np.append(scores, np.float32(weight)), np.append(ideal, np.exp(np.float32(weight)))
            e = np.exp(scores - scores.max())
            computed = e / np.float32(summed(e, rng))
            error = np.abs(computed / (ideal / ideal.sum()) - 1).max()
            assert error <= selection.weight_error(41, FLOAT32)


def test_the_products_of_all_heads_are_one_sum() -> None:
    """Small products of one head may be rounded beside large ones of another, which cancel."""
    large, small = np.array([1.0, -1.0]), np.full(6, 2.0**-24 * (1 + 2**-10))
    state = State(1, {"1": Boxes(np.array([], int), np.zeros((1, 0)), np.zeros((1, 0)), np.zeros((1, 0)))})
    error = product_error(8, FLOAT32)
    added = []
    for owner, one in (("a", large), ("b", small)):
        value, off = np.array([one.sum()]), error * np.abs(one).sum()
        added.append(Added(0, owner, value - off, value + off, np.array([False])))
    columns = _column(state, added, 0.0, 0, 8, FLOAT32, "1").values()
    lo, hi = (sum(float(column[place].min()) for column in columns) for place in (0, 1))
    found = np.float32(0)
    for one in (1.0, *small, -1.0):
        found = np.float32(found + np.float32(one))
    exact = float(small.astype(np.float32).astype(float).sum())
    assert lo <= found <= hi
    assert abs(found - exact) > 2 * FLOAT32.gamma(2) + FLOAT32.gamma(6) * exact  # so each head alone would not do


def test_parallel_neurons_have_one_direction() -> None:
    """Whatever their signs and factors; weights that are only nearly parallel, or read constants only, do not."""
    weights = np.array(
        [[1.0, -2.0, 3.0, -1.5, 1 / 3, 0.0, 1.0, 0.0], [3.0, -6.0, 1.0, -0.5, 1.0, 0.0, 3 + 2**-51, 1.0]]
    )
    found = _directions(weights).tolist()
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[5] < 0
    assert len({found[0], found[2], *found[4:]}) == 6
