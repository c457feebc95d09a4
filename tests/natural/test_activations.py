"""The functions of neurons in numpy: erf of float32, and the derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tracr.natural.activations import _erf, in_numpy, slope_in_numpy

NAMES = ("gelu", "gelu_new", "relu")


def test_erf_of_float32() -> None:
    """Within 4e-7 of `math.erf`, never beyond 1, odd, and exact far out; float64 has all digits."""
    xs = np.concatenate([np.linspace(-7, 7, 40_001), [0.0, 1e-30, 50.0, -np.inf]]).astype(np.float32)
    wanted = np.array([math.erf(x) for x in xs])
    found = _erf(xs)
    assert found.dtype == np.float32
    assert np.abs(found - wanted).max() < 4e-7
    assert np.abs(found).max() <= 1
    np.testing.assert_array_equal(found, -_erf(-xs))
    np.testing.assert_array_equal(_erf(xs[:99].astype(np.float64)), wanted[:99])


@pytest.mark.parametrize("name", NAMES)
def test_slopes(name: str) -> None:
    """Against finite differences, away from ReLU's step; ReLU has 0 there."""
    xs = np.linspace(-6, 6, 1200)
    function, slope = in_numpy(name), slope_in_numpy(name)
    numerical = (function(xs + 1e-5) - function(xs - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope(xs), numerical, atol=1e-8)
    near = xs.astype(np.float32)
    assert slope(near).dtype == function(near).dtype == np.float32
    np.testing.assert_allclose(function(near), function(xs), atol=2e-6)
    np.testing.assert_allclose(slope(near), slope(xs), atol=2e-6)
    assert slope(np.zeros(1)) == (0 if name == "relu" else 0.5)
