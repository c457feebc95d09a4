"""Starts and softness of rounds: nothing here needs JAX."""

from __future__ import annotations

import numpy as np

from tracr.compress.rounds import DECAY, LEAST, NOISE, RUNS, SOFT, decay_at, disturbed, sharpness_at


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


def test_attention_gets_sharp_and_decay_ends_during_a_round() -> None:
    """Softness and decay begin as they should; before the round ends, only the loss itself is left."""
    softness = np.geomspace(0.01, 1, RUNS)
    over = np.stack([sharpness_at(softness, done) for done in np.linspace(0, 1, 11)])
    assert np.allclose(over[0], softness)
    assert (np.diff(over, axis=0) >= 0).all()
    assert np.array_equal(over[-3:], np.ones((3, RUNS)))
    falling = [decay_at(done) for done in np.linspace(0, 1, 11)]
    assert falling[0] == DECAY[0]
    assert sorted(falling, reverse=True) == falling
    assert falling[-3:] == [0.0] * 3
