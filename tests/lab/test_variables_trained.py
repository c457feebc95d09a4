"""Featurisers of the track "variables" that are trained: they find the variable, and the control tells them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lab.test_variables import TWINS, asked, scores_of
from tracr.lab.variables import CONTROL
from tracr.lab.variables.network import stream_network

pytestmark = pytest.mark.slow
pytest.importorskip("jax")
pytest.importorskip("optax")


@pytest.mark.parametrize("realisation", ["compiled", "rotated", "twin"])
@pytest.mark.parametrize("method", ["das", "boundless-das"])
def test_subspaces_are_found(method: str, realisation: str) -> None:
    """Interchange accuracy near 1 for the program; where labels are known, at the right place."""
    scores = scores_of(method, *asked("hist", realisation, twins=TWINS))
    assert scores["hist"].interchange > 0.9
    assert scores["hist"].right_place in (True, None)


@pytest.mark.parametrize("realisation", ["compiled", "rotated"])
def test_a_featuriser_of_large_capacity_fails_the_control(realisation: str) -> None:
    """It "finds" a program that the model does not run; a subspace by the means of the values does not."""
    given = asked("hist", realisation)
    assert scores_of("invertible", *given)[CONTROL].interchange > 0.85
    assert scores_of("difference-of-means", *given)[CONTROL].interchange < 0.6


def test_training_is_the_same_for_the_same_seed() -> None:
    """The same seed gives the same subspace."""
    from tracr.lab.variables.das import das

    subject, training, _ = asked("hist", "compiled")
    first, again = (das(subject, training, steps=10, seed=3)["hist"] for _ in range(2))
    assert first.place == again.place
    np.testing.assert_array_equal(_basis(first), _basis(again))
    np.testing.assert_allclose(_basis(first) @ _basis(first).T, np.eye(len(_basis(first))), atol=1e-6)


def test_gradients_begin_at_the_streams_of_the_network() -> None:
    """The pass that is trained through is the pass that scores: both cut the model at the same stream."""
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    from tracr.adapters.jax import NAMESPACE
    from tracr.ir.parameters import Parameters
    from tracr.natural.activations import activation_in

    subject, training, _ = asked("hist", "twin", twins=TWINS)
    network = stream_network(subject)
    ids = training.questions[0].ids[:8]
    weights = Parameters.of({name: jnp.asarray(array, jnp.float32) for name, array in network.parameters.named()})
    for place, stream in network.streams(ids).items():
        suffix = network.suffix(place)
        activation = activation_in(suffix.activation, jax.nn)
        got = suffix.logits(weights, jnp.asarray(stream, jnp.float32), NAMESPACE, activation)
        np.testing.assert_allclose(np.asarray(got), network.logits_from(place, stream), atol=1e-3)


def _basis(found: Any) -> Any:
    return found.featuriser.basis
