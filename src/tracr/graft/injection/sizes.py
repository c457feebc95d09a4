"""The sizes of the injected model, and how large its layer norms' σ can be.

GPT-2 has as many dimensions as its heads have together. Heads may become wider: a wider head with zeros computes the
same once its queries are multiplied by √(d_head'/d_head), by which scores are divided.

**Layer norm.** The host's stream x has mean 0, and so has the circuit's part c of the stream: the dimension `balance`
holds minus the sum of all others. With D dimensions before and D' after, σ'² = (|x|² + |c|²)/D' + ε'. Gains of
γ √(D/D') and ε' = ε D/D' give the host its own numbers if c = 0; otherwise they are smaller by √(1 + |c|²/(|x|² + εD)).

**Bounds.** |x| is bounded by `bounds.py`. A dimension of the circuit that is on holds the scale s. A copied
dimension holds s σ_t/σ for a typical σ_t, and σ² is at least 2s²/D' + ε', because `one` and `balance` are never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.graft.injection.bounds import stream_bounds
from tracr.graft.injection.circuit import BALANCE, CIRCLE, ZERO, Dim, InjectedCircuit, reach_of
from tracr.graft.injection.freeing import FreedHost
from tracr.graft.injection.host import GPT2Host
from tracr.graft.injection.running import run_host

__all__ = ["InjectedSizes", "Scales", "scales_of", "sizes_of"]

Array = NDArray[Any]
SAMPLE, LENGTH = 8, 32  # random inputs on which typical σ are measured


@dataclass(frozen=True, eq=False)
class InjectedSizes:
    """The sizes of the injected model, and the number of each of the circuit's dimensions.

    `first_head` and `first_neuron` are those of the circuit in each layer.
    """

    width: int
    heads: int
    d_head: int
    layers: int
    inner: int
    place: dict[Dim, int]
    first_head: tuple[int, ...]
    first_neuron: tuple[int, ...]


def sizes_of(host: GPT2Host, circuit: InjectedCircuit, freed: FreedHost | None = None) -> InjectedSizes:
    """The narrowest model that holds both; the circuit takes what was freed first."""
    layers = range(max(host.layers, circuit.layers))
    first_head = [host.heads if freed is None else freed.first_head(layer) for layer in layers]
    first_neuron = [host.inner if freed is None else freed.first_neuron(layer) for layer in layers]
    per_layer = Counter(head.layer for head in circuit.heads)
    columns = [len(head.columns) + (not head.counts) for head in circuit.heads]
    values = [len(head.copied) + (head.share is not None) for head in circuit.heads]
    dims = [*circuit.dims, BALANCE, ZERO]
    least = max([host.heads, *(first_head[layer] + count for layer, count in per_layer.items())])
    wide = max(host.d_head, *columns, *values, 1) if columns else host.d_head
    options = [(n * max(wide, math.ceil((host.width + len(dims)) / n)), n) for n in range(least, 2 * least + 1)]
    width, heads = min(options)
    neurons: Counter[int] = Counter()
    for part in circuit.neurons:
        neurons[part.layer] += 2 * len(part.steps)
    return InjectedSizes(
        width,
        heads,
        width // heads,
        len(layers),
        max([host.inner, *(first_neuron[layer] + count for layer, count in neurons.items())]),
        {dim: host.width + number for number, dim in enumerate(dims)},
        tuple(first_head),
        tuple(first_neuron),
    )


@dataclass(frozen=True, eq=False)
class Scales:
    """The number s of a dimension that is on; for each layer norm the largest σ that is possible, and typical ones."""

    scale: float
    epsilon: float
    largest: list[float]
    typical: list[float]
    smallest: list[float]
    """The smallest σ on the sample, for an estimate of rounding."""


def scales_of(host: GPT2Host, circuit: InjectedCircuit, sizes: InjectedSizes, relative: float, bos: int) -> Scales:
    """The scales for a circuit whose dimensions hold `relative` times the smallest typical σ of the host."""
    ratio = math.sqrt(host.width / sizes.width)
    found = ratio * run_host(host, _random_inputs(host, bos)).deviations[:, :, 1:]
    found = np.concatenate([found, np.repeat(found[-1:], 2 * (sizes.layers - host.layers), axis=0)])
    typical = np.median(found, axis=(1, 2))
    scale, epsilon = relative * float(typical.min()), host.epsilon * host.width / sizes.width
    bounds = stream_bounds(host)
    bounds += bounds[-1:] * (2 * (sizes.layers - host.layers))
    least = math.sqrt(2 * scale**2 / sizes.width + epsilon)
    part = scale * _length(circuit, float(typical.max()) / least)
    largest = [math.sqrt((bound**2 + part**2) / sizes.width + epsilon) for bound in bounds]
    return Scales(scale, epsilon, largest, typical.tolist(), found.min(axis=(1, 2)).tolist())


def _random_inputs(host: GPT2Host, bos: int) -> Array:
    ids = np.random.default_rng(0).integers(0, host.words, (SAMPLE, min(LENGTH, host.positions)))
    ids[:, 0] = bos
    return ids


def _length(circuit: InjectedCircuit, copied: float) -> float:
    """The length of the circuit's part of the stream at most, in units of s, with `balance`: at most twice its sum."""
    reach = reach_of(circuit.neurons)
    total = 0.0
    for group in circuit.groups:
        if group.kind == "raw":
            total += copied  # the weights of attention have the sum 1
        elif group.dims[0] in reach:
            total += sum(max(-low, high) for low, high in map(reach.__getitem__, group.dims))
        else:
            total += len(group.dims) if group.name == CIRCLE else 1.0
    return 2 * total
