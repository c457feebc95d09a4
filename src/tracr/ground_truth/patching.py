"""Exact edge patching: forward passes in which readers see other outputs of some writers.

Patching an edge changes the residual stream that one reader sees, before its layer norm:

    stream += instead - written

`written` is the writer's output in the same pass, `instead` another output: on a corrupted input, 0 or a mean. All
other readers see what was written. Several edges may be patched together. A pass starts at the first layer that it
changes, and many passes run as one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ground_truth.edge_keys import all_later
from tracr.ground_truth.scores import EdgeKey
from tracr.ir.parameters import Parameters
from tracr.runtime.forward import Hook, forward
from tracr.threads import blas_threads, in_threads

__all__ = ["CleanPass", "EdgePatching", "Patched", "WritingPart", "parts_of"]

Array = NDArray[Any]
Patched = Collection[EdgeKey]
"""Edges that are patched together."""
AT_ONCE = 2**20  # numbers of the residual stream in one batch


@dataclass(frozen=True)
class WritingPart:
    """A head or a group of neurons."""

    name: str
    layer: int
    head: int | None = None
    neurons: tuple[int, int] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its inputs."""
        return (self.name,) if self.head is None else tuple(f"{self.name}.{part}" for part in "qkv")


def parts_of(parameters: Parameters) -> tuple[WritingPart, ...]:
    """All heads and MLPs of a transformer."""
    found = []
    for number, layer in enumerate(parameters.layers):
        found += [WritingPart(f"blocks.{number}.attn.{head}", number, head) for head in range(len(layer.W_Q))]
        if layer.b_in.size:
            found.append(WritingPart(f"blocks.{number}.mlp", number, neurons=(0, int(layer.b_in.size))))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class CleanPass:
    """A pass without patches: the residual stream before each layer and after the last, outputs of writers, logits."""

    streams: tuple[Array, ...]
    written: Mapping[str, Array]
    logits: Array


@dataclass(frozen=True, eq=False)
class EdgePatching:
    """A transformer whose edges can be patched."""

    parameters: Parameters
    causal: bool
    parts: tuple[WritingPart, ...]
    norm: Callable[[Any, Any], Any] | None = None
    activation: Callable[[Any], Any] | None = None

    @cached_property
    def candidates(self) -> tuple[EdgeKey, ...]:
        """All edges."""
        readers = [name for part in self.parts for name in part.inputs]
        return all_later(["embed", *(part.name for part in self.parts)], [*readers, "unembed"])

    @cached_property
    def _layer(self) -> dict[str, int]:
        """The layer of each reader and writer."""
        found = {name: part.layer for part in self.parts for name in (part.name, *part.inputs)}
        return {"embed": -1, **found, "unembed": len(self.parameters.layers)}

    @cached_property
    def _part(self) -> dict[str, WritingPart]:
        return {part.name: part for part in self.parts}

    def clean(self, ids: Array) -> CleanPass:
        """A pass on ids [input, position] that start with BOS."""
        streams: list[Array] = []
        hidden: dict[str, Array] = {}

        def keep(name: str, tensor: Array) -> None:
            if name.endswith("hook_resid_pre"):
                streams.append(tensor)
            elif name.endswith(("hook_z", "hook_post")):
                hidden[name] = tensor

        end = self._forward(ids, keep, stop=len(self.parameters.layers))
        written = {"embed": self.parameters.W_E[ids] + self.parameters.W_pos[: ids.shape[1]]}
        written |= {part.name: self._output(part, hidden) for part in self.parts}
        logits = self._forward(end, None, start=len(self.parameters.layers))
        return CleanPass((*streams, end), written, logits)

    def _forward(self, given: Array, hook: Hook | None, start: int | None = None, stop: int | None = None) -> Array:
        with np.errstate(invalid="ignore"):  # see `RunnableModel.forward`
            found = forward(
                self.parameters,
                given,
                np,
                causal=self.causal,
                hook=hook,
                norm=self.norm,
                activation=self.activation,
                start=start,
                stop=stop,
            )
        return np.asarray(found)

    def _output(self, part: WritingPart, hidden: Mapping[str, Array], rows: Any = ...) -> Array:
        """What a head or a group of neurons adds to the residual stream, for some rows; biases are nobody's."""
        weights = self.parameters.layers[part.layer]
        if part.head is not None:
            return np.asarray(
                hidden[f"blocks.{part.layer}.attn.hook_z"][rows][..., part.head, :] @ weights.W_O[part.head]
            )
        assert part.neurons is not None
        neurons = slice(*part.neurons)
        return np.asarray(hidden[f"blocks.{part.layer}.mlp.hook_post"][rows][..., neurons] @ weights.W_out[neurons])

    def run(
        self,
        clean: CleanPass,
        instead: Mapping[str, Array],
        patches: Sequence[Patched],
        read: Callable[[Array], Array],
    ) -> Array:
        """`read` of the logits [patch, input, position, d_vocab_out] of every patch, [patch, ...].

        `instead` has the outputs that readers see in place of the written ones, for all writers of the patches.
        """
        starts = [
            min((self._layer[reader] for _, reader in patch), default=self._layer["unembed"]) for patch in patches
        ]
        order = np.argsort(starts, kind="stable").tolist()
        changes = {name: instead[name] - clean.written[name] for name in {w for patch in patches for w, _ in patch}}

        def work(numbers: list[int]) -> Array:
            some = _PatchedPass(self, clean, instead, changes, [patches[n] for n in numbers], starts[numbers[0]])
            return read(some.logits())

        with blas_threads(1):
            parts = in_threads(work, list(self._batches(order, starts, clean.streams[0].size)))
        found = np.concatenate(parts)
        return np.asarray(found[np.argsort(order)])

    def _batches(self, order: list[int], starts: list[int], size: int) -> Iterator[list[int]]:
        """The numbers of the patches, in batches that start at one layer and are not too large."""
        most = max(1, AT_ONCE // size)
        ends = [place for place in range(1, len(order)) if starts[order[place]] != starts[order[place - 1]]]
        for first, last in pairwise([0, *ends, len(order)]):
            yield from (order[place : min(place + most, last)] for place in range(first, last, most))


class _PatchedPass:
    """One batch of patched passes, [patch, input, ...] in the first axis, from layer `start` on."""

    def __init__(
        self,
        model: EdgePatching,
        clean: CleanPass,
        instead: Mapping[str, Array],
        changes: Mapping[str, Array],
        patches: list[Patched],
        start: int,
    ) -> None:
        self.model, self.clean, self.instead, self.changes, self.start = model, clean, instead, changes, start
        self.shape = len(patches), len(clean.logits)
        self.readers: dict[str, dict[int, list[str]]] = {}
        for number, patch in enumerate(patches):
            for writer, reader in patch:
                self.readers.setdefault(reader, {}).setdefault(number, []).append(writer)
        stream = clean.streams[start]
        self.stream = np.broadcast_to(stream, (len(patches), *stream.shape)).reshape(-1, *stream.shape[1:])
        self.hidden: dict[str, Array] = {}

    def logits(self) -> Array:
        """The logits [patch, input, position, d_vocab_out]."""
        return self._split(self.model._forward(self.stream, self._hook, start=self.start))

    def _split(self, tensor: Array) -> Array:
        return tensor.reshape(*self.shape, *tensor.shape[1:])

    def _hook(self, name: str, tensor: Array) -> Array | None:
        if name.endswith(("hook_resid_pre", "hook_resid_mid", "hook_resid_post")):
            self.stream = tensor
        elif name.endswith(("hook_z", "hook_post")):
            self.hidden[name] = self._split(tensor)
        elif name == "logits":
            return self._again(tensor, "unembed", ..., self.model.parameters.W_U, 0)
        elif name.endswith(("attn.hook_q", "attn.hook_k", "attn.hook_v", "mlp.hook_pre")):
            return self._read_by_parts(name, tensor)
        return None

    def _read_by_parts(self, name: str, tensor: Array) -> Array:
        """The queries, keys, values or neurons before their function, of the parts of one sub-layer."""
        _, layer, sublayer, hook = name.split(".")
        weights, side = self.model.parameters.layers[int(layer)], hook.removeprefix("hook_")
        for part in self.model.parts:
            if part.layer != int(layer) or (part.head is None) != (sublayer == "mlp"):
                continue
            if part.neurons is not None:
                place = (..., slice(*part.neurons))
                tensor = self._again(tensor, part.name, place, weights.W_in[:, place[1]], weights.b_in[place[1]])
            elif part.head is not None:
                matrix, bias = (getattr(weights, f"{kind}_{side.upper()}")[part.head] for kind in "Wb")
                tensor = self._again(tensor, f"{part.name}.{side}", (..., part.head, slice(None)), matrix, bias)
        return tensor

    def _again(self, tensor: Array, reader: str, place: Any, matrix: Array, bias: Any) -> Array:
        """The tensor with what a reader computes from its patched stream, at its place."""
        patched = self.readers.get(reader)
        if not patched:
            return tensor
        seen = self._split(self.stream)[list(patched)]
        for row, (number, writers) in zip(seen, patched.items(), strict=True):
            for writer in writers:
                row += self._change(writer, number)
        seen = seen if self.model.norm is None else self.model.norm(seen, np)
        rows = self._split(tensor)
        changed = rows[list(patched)]
        changed[place] = seen @ matrix + bias
        rows[list(patched)] = changed
        return rows.reshape(tensor.shape)

    def _change(self, writer: str, number: int) -> Array:
        """What a reader sees more if it sees the other output of a writer, in one patch."""
        part = self.model._part.get(writer)
        if part is None or part.layer < self.start:
            return self.changes[writer]
        return np.asarray(self.instead[writer] - self.model._output(part, self.hidden, number))
