"""Random weights that no compiler made."""

from __future__ import annotations

import numpy as np

from tracr.ir.parameters import LayerParameters, Parameters


def random_network(rng: np.random.Generator) -> tuple[Parameters, np.ndarray]:
    """Weights, some layers without heads or neurons, and ids for them."""
    width, positions, tokens, logits = rng.integers(1, 20, size=4).tolist()
    zeros = rng.choice([0.0, 0.5, 0.9])

    def array(*shape: int) -> np.ndarray:
        if rng.random() < 0.2:  # copies
            return 1.0 * (rng.random(shape) >= 0.9)
        return 0.4 * rng.normal(size=shape) * (rng.random(shape) >= zeros)

    layers = []
    for _ in range(rng.integers(4)):
        heads, d_head, neurons = rng.integers((0, 1, 0), (4, 6, 10)).tolist()
        maps = [array(heads, width, d_head) for _ in range(3)]
        biases = [array(heads, d_head) for _ in range(3)]
        layer = dict(zip(("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"), (*maps, *biases), strict=True))
        layer["W_Q"] *= rng.choice([1, 100])  # nearly all attention goes to one key
        layer |= {"W_O": array(heads, d_head, width), "b_O": array(width)}
        layer |= {"W_in": array(width, neurons), "b_in": array(neurons)}
        layers.append(LayerParameters(**layer, W_out=array(neurons, width), b_out=array(width)))
    embeddings = array(tokens, width), array(positions, width)
    for embedding in embeddings:  # all rows different, or some, or none, or no dimension at all
        embedding[:] = embedding[
            rng.integers(len(embedding), size=len(embedding)) // rng.integers(1, len(embedding) + 1)
        ]
        embedding *= rng.random(width) >= rng.choice([0.0, 0.5, 1.0])
    parameters = Parameters(*embeddings, tuple(layers), array(width, logits))
    return parameters, rng.integers(tokens, size=(rng.integers(10), rng.integers(1, positions + 1)))
