"""The weights of many models as one safetensors file, written without an array for each."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tests.runtime.kernel.networks import random_network
from tracr.datasets import Controls
from tracr.datasets.packed_weights import PackedWeights, safetensors_of
from tracr.model.running import flat_weights


@pytest.mark.parametrize("seed", range(5))
def test_the_file_is_that_of_the_library(seed: int) -> None:
    rng = np.random.default_rng(seed)
    models = {prefix: random_network(rng)[0] for prefix in ("7.", "12.", "7/noisy:0.001.0.", '7/é"\\.')}
    arrays = {
        prefix + name: np.ascontiguousarray(array, dtype=np.float32)
        for prefix, parameters in models.items()
        for name, array in parameters.named()
    }
    packed = safetensors_of((prefix, PackedWeights.of(parameters)) for prefix, parameters in models.items())
    assert packed == safetensors.numpy.save(arrays)


def test_the_weights_of_a_model_are_those_that_were_verified() -> None:
    """The array that the kernel runs is stored; it is the cast of every weight to float32."""
    model = tracr.compile(Controls(min_ops=3).program(5), "abc", 5)
    weights = flat_weights(model)
    assert flat_weights(model) is weights
    packed = PackedWeights.of(model.parameters, weights)
    for (_, array), (_, shape, data) in zip(model.cast(np.float32).named(), packed.pieces(""), strict=True):
        assert array.shape == shape
        assert array.tobytes() == bytes(data)


def test_a_file_without_models() -> None:
    assert safetensors_of([]) == safetensors.numpy.save({})
