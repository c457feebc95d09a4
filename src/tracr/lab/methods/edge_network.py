"""A transformer in JAX whose readers see separate streams, so that edges have masks with gradients.

Writers are numbered as `EdgePatching` lists them: the embedding, then layer by layer the heads and the MLP. Readers are
numbered layer by layer: the queries of all heads, their keys, their values, the MLP; then the unembedding. Matrices
[writer, reader] hold a number for each edge; those of pairs that are no edges are not used.

Passes begin with the embedding [pair, position, d_model] of each input. They run in float32, with products in full
precision on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tracr.adapters.jax import NAMESPACE
from tracr.errors import InputError
from tracr.ground_truth.scores import EdgeKey
from tracr.ir.parameters import Parameters
from tracr.lab.methods.data import MethodData
from tracr.lab.methods.passes import BothPasses, activation_of, both_passes
from tracr.natural.activations import activation_in
from tracr.runtime.forward import forward

__all__ = ["EdgeNetwork", "JaxSubject", "in_jax", "masked_logits", "metric_of"]

Array = Any  # of JAX
Tree = dict[str, Array]
See = Callable[[str, Array], Array]
READ = frozenset({"qkv_input", "mlp_in", "result"})
FIRST = "embed"  # the first sub-layer: the output of the embedding


@dataclass(frozen=True)
class EdgeNetwork:
    """The functions between the weights. Networks of one architecture are equal, and are compiled once."""

    causal: bool
    norm: Callable[[Any, Any], Any] | None
    activation: str
    """The name of the neurons' function."""

    def __call__(self, weights: Tree, embedded: Array, read: See, write: See) -> Array:
        """Logits. `read(name, stream)` gives what readers see, `write(name, output)` what a sub-layer writes.

        Streams and outputs of heads are [pair, position, head, d_model], others [pair, position, d_model]. The names
        are the hooks of `runtime/forward.py`, and `embed` and `unembed`.
        """
        parameters = Parameters.of(weights)

        def hook(name: str, tensor: Array) -> Array | None:
            if name.endswith(("_input", "hook_mlp_in")):
                return read(name, tensor)
            if name.endswith("attn.hook_result"):
                return write(name, tensor)
            if name.endswith("hook_mlp_out") and (layer := parameters.layers[int(name.split(".")[1])]).b_in.size:
                own = tensor - layer.b_out  # the bias is nobody's
                found = write(name, own)
                return None if found is own else found + layer.b_out  # no further rounding where nothing changes
            return None

        activation = activation_in(self.activation, jax.nn)
        options: dict[str, Any] = {"causal": self.causal, "norm": self.norm, "activation": activation}
        with jax.default_matmul_precision("highest"):  # some devices round products to fewer bits by default
            stream = write(FIRST, embedded)
            end = forward(
                parameters, stream, NAMESPACE, hook=hook, fine=READ, start=0, stop=len(parameters.layers), **options
            )
            end = read("unembed", end)
            return (end if self.norm is None else self.norm(end, NAMESPACE)) @ parameters.W_U


def metric_of(logits: Array, metric: Array) -> Array:
    """The metric of each pair."""
    length, width = metric.shape[1:]
    return (logits[:, :length, :width] * metric).sum(axis=(1, 2))


def masked_logits(network: EdgeNetwork, weights: Tree, embedded: Array, instead: Array, ablated: Array) -> Array:
    """The logits of each pair if readers see a mixture of what was written and of other outputs of the writers.

    `instead` is [writer, pair, position, d_model]; `ablated` [pair, writer, reader] has the share of the other output,
    from 0 to 1.
    """
    written: list[Array] = []
    readers = 0

    def write(name: str, output: Array) -> Array:
        written.extend([output] if output.ndim == 3 else jnp.moveaxis(output, 2, 0))
        return output

    def read(name: str, stream: Array) -> Array:
        nonlocal readers
        many = stream.shape[2] if stream.ndim == 4 else 1
        share = ablated[:, : len(written), readers : readers + many]
        readers += many
        moved = jnp.einsum("bwh,wbpd->bphd", share, instead[: len(written)] - jnp.stack(written))
        return stream + (moved if stream.ndim == 4 else moved[:, :, 0])

    return network(weights, embedded, read, write)


@dataclass(frozen=True, eq=False)
class JaxSubject:
    """A subject and its data on JAX's device."""

    network: EdgeNetwork
    weights: Tree
    metric: Array
    written: Array
    """What each writer writes on the clean inputs, [writer, pair, position, d_model]."""
    instead: Array
    """What each writer writes on the corrupted inputs."""
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    candidates: Sequence[EdgeKey]

    def by_edge(self, matrix: Any) -> dict[EdgeKey, float]:
        """The numbers of a matrix [writer, reader] for the candidates."""
        rows = {name: number for number, name in enumerate(self.writers)}
        columns = {name: number for number, name in enumerate(self.readers)}
        numbers = np.asarray(matrix, dtype=np.float64)
        return {key: float(numbers[rows[key[0]], columns[key[1]]]) for key in self.candidates}


def in_jax(subject: Any, data: MethodData) -> JaxSubject:
    """A subject for gradients; the metric must have weights, because answers have no gradient."""
    if data.weights is None:
        raise InputError(
            "this method needs a metric with a gradient", hint="such as MethodData.of(pairs, case.metric(pairs))"
        )
    both = both_passes(subject, data)
    model, patching = both.model, both.patching
    network = EdgeNetwork(patching.causal, patching.norm, activation_of(model))
    return JaxSubject(
        network,
        {name: jnp.asarray(array) for name, array in patching.parameters.named()},
        jnp.asarray(data.weights, dtype=jnp.float32),
        jnp.asarray(np.stack(list(both.clean.written.values()))),
        jnp.asarray(np.stack(list(both.corrupted.written.values()))),
        tuple(both.clean.written),
        _readers(both),
        patching.candidates,
    )


def _readers(both: BothPasses) -> tuple[str, ...]:
    found = []
    for number, layer in enumerate(both.patching.parameters.layers):
        found += [f"blocks.{number}.attn.{head}.{side}" for side in "qkv" for head in range(len(layer.W_Q))]
        found += [f"blocks.{number}.mlp"] * bool(layer.b_in.size)
    return (*found, "unembed")
