"""Neurons that tolerate interference: a neuron that is either off or 1 becomes a step of two neurons.

A neuron relu(u) whose u is 0 or less, or exactly 1, equals relu(8u - 7/2) - relu(8u - 9/2): 0 up to u = 7/16, 1 from
u = 9/16 on, a ramp between them. The pair gives the same for the neuron's own values, and for values near them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracr.compress.network import Mlp, Network

__all__ = ["SLOPE", "stepped"]

SLOPE = 8


def stepped(network: Network) -> Network:
    """The network with a step for each neuron; that its neurons are flags is the caller's claim."""
    return replace(network, parts=tuple(_steps(one) if isinstance(one, Mlp) else one for one in network.parts))


def _steps(part: Mlp) -> Mlp:
    reads = SLOPE * np.concatenate([part.W_in, part.W_in], axis=1)
    half = np.repeat([0.5, -0.5], len(part.b_in))
    bias = SLOPE * (np.concatenate([part.b_in, part.b_in]) - 0.5) + half
    return replace(part, W_in=reads, b_in=bias, W_out=np.concatenate([part.W_out, -part.W_out]))
