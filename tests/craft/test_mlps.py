"""The MLP constructions, run as float32 neurons: their claims about exactness and error hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tracr.craft.arithmetic import carry, divide, interpolate
from tracr.craft.linear import BOS, ONE, LinearMap, NumberRead, read_code, read_number
from tracr.craft.lookups import look_up, look_up_pairs
from tracr.craft.mlps import Units
from tracr.craft.numerics import Noise
from tracr.craft.staircases import TooClose, staircase
from tracr.craft.variables import NUMBER, Variable
from tracr.rasp.annotations import Encoding

X = Variable("x", Encoding.NUMERICAL, (NUMBER, None), low=-50.0, high=50.0)


def run(units: Units, inputs: dict[Variable, NDArray[np.float32]]) -> NDArray[np.float32]:
    """The neurons in float32 on rows of inputs."""
    rows = len(next(iter(inputs.values())))
    hidden = np.zeros((rows, units.count), dtype=np.float32)
    for variable, block in units.read.blocks.items():
        given_rows = inputs.get(variable)
        if given_rows is None:
            given_rows = (
                np.ones((rows, 1), np.float32) if variable is ONE else np.zeros((rows, variable.size), np.float32)
            )
        hidden += given_rows @ block.astype(np.float32)
    return np.maximum(hidden, 0) @ units.write.astype(np.float32)


def number(low: float, high: float, noise: Noise) -> NumberRead:
    """A number that may be None."""
    variable = Variable("x", Encoding.NUMERICAL, (NUMBER, None), noise, low=low, high=high)
    return NumberRead(
        LinearMap.of(X, np.array([[1.0], [0.0]])), read_number(variable).flags and ((None, NONE),), noise, low, high
    )


NONE = LinearMap.of(X, np.array([[0.0], [1.0]]))
points_and_codes = st.lists(
    st.tuples(st.integers(-400, 400).map(lambda i: i / 8), st.integers(0, 3)),
    min_size=1,
    max_size=12,
    unique_by=lambda p: p[0],
)


@given(pairs=points_and_codes, shake=st.floats(-1, 1))
@settings(deadline=None)
def test_a_staircase_rounds_to_its_points(pairs: list[tuple[float, int]], shake: float) -> None:
    """Within a quarter of a gap the output is the table's row, None gives its own row, BOS gives nothing."""
    pairs = sorted(pairs)
    points = np.array([point for point, _ in pairs])
    table = np.eye(4)[[code for _, code in pairs]]
    error = 0.02
    read = number(-50, 50, Noise(error=error))
    units = staircase(read, points, table, {None: np.array([0.0, 0.0, 0.0, 1.0])})
    values = np.zeros((len(points) + 2, 2), np.float32)
    values[: len(points), 0] = points + shake * error
    values[-2, 1] = 1
    bos = np.zeros((len(values), 1), np.float32)
    bos[-1] = 1
    out = run(units, {X: values, BOS: bos})
    assert out[:-2] == pytest.approx(table, abs=max(units.noise.error, 1e-6))
    assert out[-2].tolist() == [0, 0, 0, 1]
    assert not out[-1].any()


@pytest.mark.parametrize("longest", [1, 2, 7, 100, 1000, 2000])
def test_widths_are_decoded_exactly(longest: int) -> None:
    """From c/(c+w), one or two roundings off, to an exact one-hot code: not even the last bit is wrong."""
    weight = float(np.exp(np.float64(np.float32(np.log(longest)))))
    widths = np.arange(longest + 1)
    shares: np.ndarray = weight / (weight + widths)
    read = number(0.5, 1.0, Noise(error=80 * 2**-24, grid=2.0**-24))
    order = np.argsort(shares)
    units = staircase(read, shares[order], np.eye(longest + 1)[order], {})
    assert units.noise == Noise()
    for wobble in (-3, 0, 3):
        values = np.zeros((longest + 1, 2), np.float32)
        values[:, 0] = np.minimum(shares.astype(np.float32) * np.float32(1 + wobble * 2**-24), 1)
        assert np.array_equal(run(units, {X: values}), np.eye(longest + 1))


def test_points_closer_than_the_error_are_refused() -> None:
    """But only where the function separates them."""
    read = number(0, 1, Noise(error=1e-3))
    points = np.array([0.0, 0.001, 1.0])
    with pytest.raises(TooClose, match=r"0\.0 and 0\.001"):
        staircase(read, points, np.array([[0.0], [1.0], [1.0]]), {})
    assert staircase(read, points, np.array([[1.0], [1.0], [0.0]]), {}).count


@given(
    points=st.lists(st.integers(-300, 300).map(lambda i: i / 7), min_size=1, max_size=10, unique=True).map(sorted),
    seed=st.integers(0, 1000),
)
@settings(deadline=None)
def test_interpolation_stays_within_its_bound(points: list[float], seed: int) -> None:
    """The error it announces covers the error it makes."""
    numbers = np.random.default_rng(seed).normal(size=len(points)) * 10
    read = number(-50, 50, Noise(error=2**-19))
    units = interpolate(read, np.array(points), numbers, {}, width=1)
    values = np.zeros((len(points), 2), np.float32)
    values[:, 0] = points
    assert np.abs(run(units, {X: values})[:, 0] - numbers).max() <= units.noise.error


def test_interpolation_on_a_grid_is_exact() -> None:
    """Integers to integers lose nothing, whatever their number."""
    read = number(0, 1000, Noise(grid=1.0))
    points = np.arange(1001.0)
    units = interpolate(read, points, 3 - points, {}, width=1)
    assert units.noise.error == 0
    assert units.count <= 2
    values = np.zeros((1001, 2), np.float32)
    values[:, 0] = points
    assert np.array_equal(run(units, {X: values})[:, 0], 3 - points)


def test_a_rough_code_is_cleaned_by_a_lookup() -> None:
    """Coordinates off by up to a quarter come out exactly 0 and, but for rounding, 1."""
    code = Variable("c", Encoding.CATEGORICAL, ("a", "b", "c"))
    rough = (np.eye(3) + np.array([[0.2, -0.2, 0.1], [0.1, -0.2, 0.2], [-0.2, 0.2, 0.2]])).astype(np.float32)
    units = look_up(read_code(code).then, np.eye(3), Noise(error=0.2, cold=0.2), merge=False)
    out = run(units, {code: rough})
    assert (out[~np.eye(3, dtype=bool)] == 0).all()
    assert np.diagonal(out) == pytest.approx([1, 1, 1], abs=1e-6)


def test_pairs_need_both() -> None:
    """A neuron per pair fires for its pair only, and never at BOS."""
    fst, snd = (Variable(name, Encoding.CATEGORICAL, (0, 1)) for name in "ab")
    rows, columns = np.repeat(np.eye(2), 2, axis=1), np.tile(np.eye(2), 2)
    written = np.arange(1.0, 5.0)[:, None]
    twice = read_code(fst).then(2 * rows), read_code(snd).then(2 * columns)
    units = look_up_pairs(*twice, written, (Noise(), Noise()))
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
    first = np.eye(2, dtype=np.float32)[[a for a, _ in pairs]]
    second = np.eye(2, dtype=np.float32)[[b for _, b in pairs]]
    assert run(units, {fst: first, snd: second})[:, 0].tolist() == [1, 2, 3, 4]
    assert not run(units, {fst: first * 0, snd: second * 0}).any()


def test_numbers_are_carried_with_their_sign() -> None:
    """relu(z) - relu(-z), plus a constant that is not added at BOS or where there is no number."""
    read = number(-50, 50, Noise())
    units = carry(read, 2.5, {None: np.array([0.0, 1.0])}, width=2)
    values = np.array([[-3, 0], [4, 0], [0, 1], [0, 0]], np.float32)
    bos = np.array([[0], [0], [0], [1]], np.float32)
    assert run(units, {X: values, BOS: bos}).tolist() == [[-0.5, 0], [6.5, 0], [0, 1], [0, 0]]


@given(st.integers(1, 300), st.floats(0.01, 1000), st.integers(0, 10**6))
def test_a_sum_is_divided_by_its_count(longest: int, largest: float, seed: int) -> None:
    """Within the stated error, however rough the code of the count, up to 0.2; flags pass for one key."""
    counts = Variable("w", Encoding.CATEGORICAL, tuple(range(longest + 1)))
    total = Variable("s", Encoding.NUMERICAL, (NUMBER, None))
    read, flag = (LinearMap.of(total, np.eye(2)[:, [place]]) for place in (0, 1))
    units = divide(read, [(1, flag)], counts, longest * largest, 0.0, np.array([-3.0, 0.0]), 2)
    rng = np.random.default_rng(seed)
    held = np.arange(longest + 1)
    code = np.eye(longest + 1) + rng.uniform(-0.2, 0.2, (longest + 1, longest + 1))
    sums = np.stack([rng.uniform(-1, 1, longest + 1) * held * largest, (held == 1) * rng.integers(0, 2)], axis=1)
    sums[sums[:, 1] == 1, 0] = 0.0
    got = run(units, {counts: code.astype(np.float32), total: sums.astype(np.float32)})
    means = np.where(held == 0, -3.0, sums[:, 0] / np.maximum(held, 1))
    rounding = 2.0**-24 * np.abs(means)  # of the sum that was passed in
    assert (np.abs(got[:, 0] - means) <= units.noise.error + rounding).all()
    assert np.abs(got[:, 1] - sums[:, 1]).max() <= 1e-4
