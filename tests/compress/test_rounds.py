"""Starts and softness of rounds: nothing here needs JAX."""

from __future__ import annotations

import numpy as np

from tracr.compress.rounds import LEAST, NOISE, RUNS, SOFT, disturbed, random_starts, sharpness


def test_the_best_runs_are_disturbed_in_turn() -> None:
    """Each start is near one of the best runs: its noise is in proportion to the size of a feature."""
    rng = np.random.default_rng(0)
    best = rng.normal(size=(3, 1, 20, 4)) * np.geomspace(0.01, 100, 20)[:, None]
    W, softness = disturbed(rng, best)
    assert W.shape == (RUNS, 1, 20, 4)
    size = np.sqrt((best**2).mean(axis=-1, keepdims=True) + LEAST**2)
    away = (W - best[np.arange(RUNS) % 3]) / size[np.arange(RUNS) % 3]
    noise = away.std(axis=(1, 2, 3))
    assert NOISE[0] / 2 < noise.min() < noise.max() < 2 * NOISE[1]
    assert SOFT[0] <= softness.min() <= softness.max() <= SOFT[1]


def test_attention_gets_sharp_during_a_round() -> None:
    """It starts with the softness of each run and ends, before the round does, with the model's own attention."""
    W, softness = random_starts(np.random.default_rng(0), (1, 20, 4), 1 / 64)
    assert W.shape == (RUNS, 1, 20, 4)
    over = np.stack([sharpness(softness, done) for done in np.linspace(0, 1, 11)])
    assert np.allclose(over[0], 1 / 64)
    assert (np.diff(over, axis=0) >= 0).all()
    assert np.array_equal(over[-3:], np.ones((3, RUNS)))
