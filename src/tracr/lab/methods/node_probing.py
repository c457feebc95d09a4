"""Subnetwork probing with a gate on every head and MLP (Cao et al. 2021; as a circuit, Conmy et al. 2023).

All readers see the output of a head or an MLP through its gate; the embedding has none. An edge is in the circuit of
the open gates if the gates of writer and reader are open. Therefore its score is the smaller of their parameters θ, or
the only one; `embed->unembed`, which no gate closes, gets the largest θ. `hard_concrete.py` has the gates, the loss and
the training. `steps` forward and backward passes per pair.

Not compared score by score: training draws random gates, and auto-circuit has gates on edges only. `edge_probing.py`
says how passes with masks are checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.ground_truth.edge_keys import coarsened
from tracr.ground_truth.scores import EdgeKey

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["node_probing"]


def node_probing(
    subject: Any, data: MethodData, *, steps: int = 300, rate: float = 0.1, weight: float = 0.5, seed: int = 0
) -> dict[EdgeKey, float]:
    """The score of every edge of a subject; the metric must have weights. `rate` is Adam's."""
    need("jax", "jax")
    need("optax", "jax")
    from tracr.lab.methods.edge_network import in_jax
    from tracr.lab.methods.hard_concrete import train_gates

    own = in_jax(subject, data)
    nodes = own.writers[1:]  # without the embedding
    if not nodes:
        return dict.fromkeys(own.candidates, 0.0)
    gate_of = np.repeat(np.arange(-1, len(nodes))[:, None], len(own.readers), axis=1)
    theta = train_gates(own, gate_of, steps=steps, rate=rate, weight=weight, seed=seed)
    by_node = dict(zip(nodes, theta.tolist(), strict=True))
    largest = float(theta.max())
    return {
        key: min((by_node[name] for name in coarsened(key, "head") if name in by_node), default=largest)
        for key in own.candidates
    }
