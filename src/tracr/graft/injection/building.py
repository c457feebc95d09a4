"""The weights of the injected model: the host's, made wider, and the circuit's.

**Steps.** The neurons of a step read z = K s u/σ, with K such that |z| >= H + T even for the largest σ, where T is
where the activation f becomes linear or 0. Then f(z + H) - f(z - H) is 2H if u > 0, and 0 otherwise. Weights of ±s/2H
write s.

**Heads.** Scores are multiplied so that the smallest difference between selected and other keys is `GAP`, for the
largest σ. BOS, if it is not counted, has a score half way between, computed from its own σ, which is the same for
every input.

**Answers.** The logit of an answer's token grows by at least the largest difference of two logits of the host, plus
`WINS`, unless `boost` says by how much it grows for a typical σ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.graft.injection.bounds import longest_logit
from tracr.graft.injection.circuit import BALANCE, BOS, ONE, ZERO, Dim, HeadPlan, InjectedCircuit, NeuronStep
from tracr.graft.injection.freeing import FreedHost, emptied
from tracr.graft.injection.host import GPT2Host, shapes
from tracr.graft.injection.running import run_host
from tracr.graft.injection.sizes import InjectedSizes, Scales

__all__ = ["GAP", "HALF", "WINS", "added_weights", "build"]

Array = NDArray[Any]
HALF = 16.0
GAP = 40.0
WINS = 10.0
ROUNDS, SETTLED = 8, 1e-7  # repetitions until BOS has the σ that was assumed


def build(
    host: GPT2Host, circuit: InjectedCircuit, sizes: InjectedSizes, scales: Scales, bos: int, boost: float | None
) -> GPT2Host:
    """The injected model."""
    first = np.array([[bos]])
    ratio = math.sqrt(host.width / sizes.width)
    at_bos = ratio * run_host(host, first).deviations[:, 0, 0]
    at_bos = np.concatenate([at_bos, np.repeat(at_bos[-1:], 2 * (sizes.layers - host.layers))])
    wide = _widened(host, sizes, scales)
    for _ in range(ROUNDS):
        built = _WeightBuilder(host, wide, circuit, sizes, scales, at_bos).built(boost)
        found = run_host(built, first).deviations[:, 0, 0]
        if np.abs(found / at_bos - 1).max() < SETTLED:
            return built
        at_bos = found
    raise TracrError(
        "the circuit is so large that it changes the σ of BOS at which it is read", hint="use a smaller scale"
    )


def added_weights(
    host: GPT2Host, sizes: InjectedSizes, scales: Scales, freed: FreedHost | None = None
) -> dict[str, NDArray[np.bool_]]:
    """For each weight of the injected model, whether it was added or freed. The others are the host's."""
    marked = GPT2Host(host.config, {name: np.ones_like(array) for name, array in host.tensors.items()}, {})
    if freed is not None:
        marked = emptied(marked, freed.heads, freed.neurons)
    found = {name: array == 0 for name, array in _widened(marked, sizes, scales).tensors.items()}
    for name, added in found.items():
        if _is_gain(name):
            added[host.width :] = True
    return found


def _widened(host: GPT2Host, sizes: InjectedSizes, scales: Scales) -> GPT2Host:
    """The host with more dimensions, wider heads, more neurons and more layers, which all do nothing."""
    config = {
        **host.config,
        "n_embd": sizes.width,
        "n_head": sizes.heads,
        "n_layer": sizes.layers,
        "n_inner": sizes.inner,
        "layer_norm_epsilon": scales.epsilon,
        "tie_word_embeddings": False,
        "architectures": ["GPT2LMHeadModel"],
    }
    config.pop("n_ctx", None)
    empty = GPT2Host(config, {}, host.files)
    tensors = {name: np.zeros(shape) for name, shape in shapes(empty).items()}
    ratio = math.sqrt(host.width / sizes.width)
    for name, array in host.tensors.items():
        if name.endswith(("c_attn.weight", "c_attn.bias", "attn.c_proj.weight")):
            _widen_heads(host, sizes, name, array, tensors[name])
        else:
            tensors[name][tuple(slice(size) for size in array.shape)] = array * (ratio if _is_gain(name) else 1.0)
    for name, array in tensors.items():
        if _is_gain(name):
            array[host.width :] = 1.0
    return GPT2Host(config, tensors, host.files)


def _is_gain(name: str) -> bool:
    return name.rpartition(".")[0].endswith(("ln_1", "ln_2", "ln_f")) and name.endswith(".weight")


def _widen_heads(host: GPT2Host, sizes: InjectedSizes, name: str, array: Array, into: Array) -> None:
    """The host's heads, each filled up with zeros."""
    for head in range(host.heads):
        old = slice(head * host.d_head, (head + 1) * host.d_head)
        new = slice(head * sizes.d_head, head * sizes.d_head + host.d_head)
        if name.endswith("c_proj.weight"):
            into[new, : host.width] = array[old]
            continue
        for part in range(3):
            factor = math.sqrt(sizes.d_head / host.d_head) if part == 0 else 1.0
            source = array.reshape(*array.shape[:-1], 3, host.width)[..., part, old]
            target = into.reshape(*into.shape[:-1], 3, sizes.width)[..., part, new]
            target[tuple(slice(size) for size in source.shape)] = factor * source


class _WeightBuilder:
    """Adds the circuit to the widened host."""

    def __init__(
        self,
        host: GPT2Host,
        wide: GPT2Host,
        circuit: InjectedCircuit,
        sizes: InjectedSizes,
        scales: Scales,
        at_bos: Array,
    ) -> None:
        self.host, self.wide, self.circuit, self.sizes, self.scales = host, wide, circuit, sizes, scales
        self.at_bos = at_bos
        self.tensors = {name: array.copy() for name, array in wide.tensors.items()}
        raw = {group.name for group in circuit.groups if group.kind == "raw"}
        self.units: dict[Dim, float] = {}
        for head in circuit.heads:
            norm = 2 * head.layer
            unit = scales.typical[norm] / scales.largest[norm]
            self.units |= {to: unit for _, to in head.copied if to[0] in raw}

    def built(self, boost: float | None) -> GPT2Host:
        for word, dims in self.circuit.by_token.items():
            self.tensors["wte.weight"][word] += self.scales.scale * self.written(dims)
        for position, dims in enumerate(self.circuit.by_position):
            self.tensors["wpe.weight"][position] += self.scales.scale * self.written(dims)
        numbers = self.circuit.head_numbers(self.sizes.first_head)
        for head in self.circuit.heads:
            self.add_head(head, numbers[head.variable][1])
        places = self.circuit.neuron_numbers(self.sizes.first_neuron)
        for part, (first, _) in zip(self.circuit.neurons, places, strict=True):
            for place, step in enumerate(part.steps):
                self.add_step(step, part.layer, first + 2 * place)
        for dim, word in self.circuit.answers.items():
            self.tensors["lm_head.weight"][word] += self.strength(boost) * self.read({dim: 1.0})
        return GPT2Host(self.wide.config, self.tensors, self.wide.files)

    def strength(self, boost: float | None) -> float:
        """The weight of an answer in the logits."""
        if boost is not None:
            return boost * self.scales.typical[-1] / self.scales.scale
        return (longest_logit(self.host) + WINS) * self.scales.largest[-1] / self.scales.scale

    def read(self, reads: Mapping[Dim, float]) -> Array:
        """The weights of a linear function of dimensions. `zero` takes away the rounding error of the mean."""
        found = np.zeros(self.sizes.width)
        for dim, weight in reads.items():
            found[self.sizes.place[dim]] += weight / self.units.get(dim, 1.0)
        found[self.sizes.place[ZERO]] -= found.sum()
        return found

    def written(self, writes: Mapping[Dim, float]) -> Array:
        """The dimensions that are written, in units of s, with their balance."""
        found = np.zeros(self.sizes.width)
        for dim, weight in writes.items():
            found[self.sizes.place[dim]] += weight
        found[self.sizes.place[BALANCE]] -= found.sum()
        return found

    def add_head(self, head: HeadPlan, number: int) -> None:
        block, norm, width = f"h.{head.layer}.attn", 2 * head.layer, self.sizes.width
        largest, start = self.scales.largest[norm], number * self.sizes.d_head
        strength = 2 * GAP * (largest / self.scales.scale) ** 2 * math.sqrt(self.sizes.d_head)
        columns = [(column.query, column.key) for column in head.columns]
        if not head.counts:
            columns.append(({ONE: 1.0}, {BOS: -0.5 * float(self.at_bos[norm]) / largest}))
        qkv, out = self.tensors[f"{block}.c_attn.weight"], self.tensors[f"{block}.c_proj.weight"]
        for place, (query, key) in enumerate(columns, start):
            qkv[:, place] = math.sqrt(strength) * self.read(query)
            qkv[:, width + place] = math.sqrt(strength) * self.read(key)
        values = [(source, to, self.scales.typical[norm]) for source, to in head.copied]
        values += [(BOS, head.share, float(self.at_bos[norm]))] if head.share else []
        for place, (source, to, factor) in enumerate(values, start):
            qkv[:, 2 * width + place] = self.read({source: 1.0})
            out[place] = factor * self.written({to: 1.0})

    def add_step(self, step: NeuronStep, layer: int, place: int) -> None:
        block, largest = f"h.{layer}.mlp", self.scales.largest[2 * layer + 1]
        gain = (HALF + self.host.tail) * largest / (step.margin * self.scales.scale)
        written = self.scales.scale / (2 * HALF) * self.written(step.writes)
        for sign, neuron in ((1.0, place), (-1.0, place + 1)):
            self.tensors[f"{block}.c_fc.weight"][:, neuron] = gain * self.read(step.reads)
            self.tensors[f"{block}.c_fc.bias"][neuron] = sign * HALF
            self.tensors[f"{block}.c_proj.weight"][neuron] = sign * written
