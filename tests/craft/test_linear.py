from __future__ import annotations

import numpy as np
import pytest

from tracr.craft.linear import BOS, PAD, LinearMap, NumberRead, linear_combination
from tracr.craft.numerics import Noise


@pytest.mark.parametrize("factor", [0.0, 0.1, -0.5, 1.0, 3.0])
def test_flags_keep_their_errors_whatever_the_factor(factor: float) -> None:
    flags = ((None, LinearMap.of(PAD, np.eye(1))),)
    read = NumberRead(LinearMap.of(BOS, np.eye(1)), flags, Noise(1e-3), 0.0, 1.0)
    total = linear_combination([(read, factor)])
    assert total.noise.error >= 1e-3
    assert not total.noise.grid
    without = linear_combination([(NumberRead(read.number, (), read.noise, 0.0, 1.0), factor)])
    assert without.noise.error == pytest.approx(1e-3 * abs(factor), rel=1e-2, abs=1e-9)
