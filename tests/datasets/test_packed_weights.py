"""The weights of many models as one safetensors file, written without an array for each."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy

from tests.runtime.kernel.networks import random_network
from tracr.datasets.packed_weights import PackedWeights, safetensors_of


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


def test_a_file_without_models() -> None:
    assert safetensors_of([]) == safetensors.numpy.save({})
