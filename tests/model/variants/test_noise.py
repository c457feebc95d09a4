"""Models with noise: as much as they bear, and its effect."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tests.library import compiled
from tests.tiers import slow
from tracr.model.variants.readback import first_problem
from tracr.rasp.programs import EXAMPLES

LIBRARY = list(EXAMPLES)


@pytest.mark.parametrize("name", [*LIBRARY[::3], *slow(name for name in LIBRARY if name not in LIBRARY[::3])])
def test_as_much_noise_as_a_model_bears(name: str) -> None:
    """Without a scale outputs and variables are the same; with 1,000 times as much, some is found that is not."""
    model = compiled(name)
    noisy = model.with_noise(seed=3)
    assert noisy.verify(budget=2_000)
    assert noisy.variant.noise > 0
    assert (noisy.parameters.W_E != model.parameters.W_E).all()
    assert (noisy.parameters.W_U != model.parameters.W_U).all()
    assert first_problem(model.with_noise(min(1_000 * noisy.variant.noise, 10.0), seed=3))


def test_noise_and_its_effect_shrink_together() -> None:
    """The logits of the longest input move in proportion, for small noise."""
    model = compiled("frac_prevs")
    ids, _, _ = model.vocabulary.encode(["axbxc"])
    clean = model.logits(ids, np.float64)
    off = [np.abs(model.with_noise(scale).logits(ids, np.float64) - clean)[:, 1:].max() for scale in (1e-8, 1e-9)]
    assert off[0] / off[1] == pytest.approx(10, rel=0.05)
    assert np.array_equal(model.with_noise(0).logits(ids, np.float64), clean)


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf"), True, "0.1"])
def test_the_scale_of_noise_is_a_number_from_0_on(scale: float) -> None:
    """Anything else is refused."""
    with pytest.raises(tracr.TracrError, match="scale of the noise"):
        compiled("hist").with_noise(scale)
