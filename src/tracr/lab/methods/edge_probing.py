"""Subnetwork probing with a gate on every edge (Cao et al. 2021; on edges as in auto-circuit).

The score of an edge is the parameter θ of its trained gate: the larger it is, the more often the gate is open.
`hard_concrete.py` has the gates, the loss and the training. `steps` forward and backward passes per pair.

Not compared score by score: training draws random gates. auto-circuit's version (1.0.1) also patches means over the
corrupted inputs, where this one patches the corrupted input of the pair. Passes with masks are compared with PyTorch
and, with masks 0 and 1, with a transformer written by hand; gradients of masks at 1/2 with auto-circuit's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.ground_truth.scores import EdgeKey

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["edge_probing"]


def edge_probing(
    subject: Any, data: MethodData, *, steps: int = 300, rate: float = 0.1, weight: float = 0.5, seed: int = 0
) -> dict[EdgeKey, float]:
    """The score of every edge of a subject; the metric must have weights. `rate` is Adam's."""
    need("jax", "jax")
    need("optax", "jax")
    from tracr.lab.methods.edge_network import in_jax
    from tracr.lab.methods.hard_concrete import train_gates

    own = in_jax(subject, data)
    gate_of = np.full((len(own.writers), len(own.readers)), -1)
    for number, (writer, reader) in enumerate(own.candidates):
        gate_of[own.writers.index(writer), own.readers.index(reader)] = number
    theta = train_gates(own, gate_of, steps=steps, rate=rate, weight=weight, seed=seed)
    return dict(zip(own.candidates, theta.tolist(), strict=True))
