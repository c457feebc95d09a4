"""Unused heads and neurons of a host: those that can be replaced by their means, as far as some inputs show.

Freed components are put last in their layers, which does not change what the host computes, and set to 0; what they
wrote on average becomes part of the bias. Only as many are freed as the circuit can take, the least used first, and
only while all of them together change the host's next-token distribution by at most `tolerance` nats a position, on
half of the inputs. The change on the other half is `divergence`. This is a measurement: other inputs may use what was
freed.

Dimensions are not freed. Layer norms read all of them, and in a trained stream each direction varies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError, TracrError
from tracr.graft.injection.circuit import InjectedCircuit
from tracr.graft.injection.host import GPT2Host
from tracr.graft.injection.running import Inside, log_probabilities, run_host

__all__ = ["FreedHost", "emptied", "free_places"]

Array = NDArray[Any]
Places = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class FreedHost:
    """A host whose unused heads and neurons are empty, and last in their layers.

    `heads` and `neurons` have the numbers that they had in each layer of the host.
    """

    host: GPT2Host = field(repr=False)
    heads: Places
    neurons: Places
    tolerance: float
    divergence: float

    def first_head(self, layer: int) -> int:
        """The number of heads that are kept in a layer."""
        return self.host.heads - len(self.heads.get(layer, ()))

    def first_neuron(self, layer: int) -> int:
        """The number of neurons that are kept in a layer."""
        return self.host.inner - len(self.neurons.get(layer, ()))


def free_places(host: GPT2Host, circuit: InjectedCircuit, ids: Array, tolerance: float) -> FreedHost:
    """The host with as many heads and neurons freed as the circuit needs and the tolerance allows."""
    if len(ids) < 2:
        raise InputError("one input does not show what the host uses", hint="give at least two inputs as data")
    search = _UnusedSearch(host, ids[::2])
    heads, least = search.heads(Counter(head.layer for head in circuit.heads), tolerance)
    steps: Counter[int] = Counter()
    for part in circuit.neurons:
        steps[part.layer] += 2 * len(part.steps)
    neurons = search.neurons(steps, heads, tolerance)
    if not heads and not neurons:
        raise TracrError(
            "the host has no unused head or neuron where the circuit needs one: on the data, replacing the least used "
            f"head by its mean changes the next-token distribution by {least:.2g} nats, and {tolerance:g} are allowed",
            hint='use route="added", which leaves the host as it is, or a larger tolerance',
        )
    found = search.emptied(heads, neurons)
    divergence = _divergence(run_host(host, ids[1::2]).logits, run_host(found, ids[1::2]).logits)
    return FreedHost(found, _by_layer(heads), _by_layer(neurons), tolerance, divergence)


class _UnusedSearch:
    """A host on inputs, and what it says without some of its components."""

    def __init__(self, host: GPT2Host, ids: Array) -> None:
        self.host, self.ids = host, ids
        self.inside: list[Inside] = []
        run = run_host(host, ids, inside=self.inside)
        self.own, self.deviations = run.logits, np.median(run.deviations, axis=(1, 2))

    def emptied(self, heads: list[tuple[int, int]], neurons: list[tuple[int, int]]) -> GPT2Host:
        means = [(one.mixed.mean(axis=(0, 1)), one.neurons.mean(axis=(0, 1))) for one in self.inside]
        return emptied(self.host, _by_layer(heads), _by_layer(neurons), means)

    def change(self, heads: list[tuple[int, int]], neurons: list[tuple[int, int]]) -> float:
        """The mean divergence from the host if these components are replaced by their means."""
        return _divergence(self.own, run_host(self.emptied(heads, neurons), self.ids).logits)

    def heads(self, needed: Mapping[int, int], tolerance: float) -> tuple[list[tuple[int, int]], float]:
        """The heads to free, and the change by the least used one."""
        every = [(layer, head) for layer in needed if layer < self.host.layers for head in range(self.host.heads)]
        changes = {one: self.change([one], []) for one in every}
        found: list[tuple[int, int]] = []
        for one in sorted(every, key=changes.__getitem__):
            if sum(layer == one[0] for layer, _ in found) < needed[one[0]]:
                if self.change([*found, one], []) > tolerance:
                    break
                found.append(one)
        return found, min(changes.values(), default=np.inf)

    def neurons(
        self, needed: Mapping[int, int], heads: list[tuple[int, int]], tolerance: float
    ) -> list[tuple[int, int]]:
        """The neurons to free besides the heads: the most that the tolerance allows, the least used first."""
        listed = sorted(one for layer, count in needed.items() for one in self._least_used(layer, count))
        every = [(layer, neuron) for _, layer, neuron in listed]
        low, high = 0, len(every)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.change(heads, every[:middle]) <= tolerance else (low, middle - 1)
        return every[:low]

    def _least_used(self, layer: int, count: int) -> Iterator[tuple[float, int, int]]:
        """The neurons of a layer that write least, around their means, in units of the stream's σ."""
        if layer < self.host.layers:
            spread = self.inside[layer].neurons.std(axis=(0, 1))
            size = np.linalg.norm(self.host.tensors[f"h.{layer}.mlp.c_proj.weight"], axis=1)
            written = spread * size / self.deviations[2 * layer + 2]
            for neuron in np.argsort(written, kind="stable")[:count]:
                yield float(written[neuron]), layer, int(neuron)


def _by_layer(places: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for layer, number in sorted(places):
        found[layer] = (*found.get(layer, ()), number)
    return found


def _divergence(before: Array, after: Array) -> float:
    """The mean divergence of next-token distributions, in nats."""
    own, other = log_probabilities(before), log_probabilities(after)
    return max(0.0, float((np.exp(own) * (own - other)).sum(axis=-1).mean()))


def emptied(host: GPT2Host, heads: Places, neurons: Places, means: list[tuple[Array, Array]] | None = None) -> GPT2Host:
    """The host with some heads and neurons of each layer last and 0; `means` of theirs go to the biases."""
    tensors = dict(host.tensors)
    for layer in {*heads, *neurons}:
        block, inside = f"h.{layer}", (None, None) if means is None else means[layer]
        for part, count, chosen, mean in (
            ("attn", host.heads, heads.get(layer, ()), inside[0]),
            ("mlp", host.inner, neurons.get(layer, ()), inside[1]),
        ):
            if chosen:
                _empty(tensors, f"{block}.{part}", count, chosen, mean)
    return replace(host, tensors=tensors)


def _empty(tensors: dict[str, Array], name: str, count: int, chosen: tuple[int, ...], mean: Array | None) -> None:
    """Put the chosen heads or neurons last, and set them to 0."""
    order, kept = [*(one for one in range(count) if one not in chosen), *chosen], count - len(chosen)
    into = f"{name}.c_{'attn' if name.endswith('attn') else 'fc'}"
    for kind in ("weight", "bias"):
        array = tensors[f"{into}.{kind}"]
        parts = 3 if name.endswith("attn") else 1  # queries, keys and values stand side by side
        moved = array.reshape(*array.shape[:-1], parts, count, -1)[..., order, :]
        moved[..., kept:, :] = 0
        tensors[f"{into}.{kind}"] = moved.reshape(array.shape)
    out = tensors[f"{name}.c_proj.weight"]
    rows = out.reshape(count, -1, out.shape[-1])
    if mean is not None:
        lost = np.einsum("hd,hdm->m", mean.reshape(count, -1)[list(chosen)], rows[list(chosen)])
        tensors[f"{name}.c_proj.bias"] = tensors[f"{name}.c_proj.bias"] + lost
    moved = rows[order]
    moved[kept:] = 0
    tensors[f"{name}.c_proj.weight"] = moved.reshape(out.shape)
