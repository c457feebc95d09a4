"""Exact edge patching: forward passes in which readers see other outputs of some writers.

Patching an edge changes the residual stream that one reader sees, before its layer norm:

    stream += instead - written

`written` is the writer's output in the same pass, `instead` another output: on a corrupted input, 0 or a mean. All
other readers see what was written. Several edges may be patched together. Many passes run as one batch: what a layer
computes depends only on the edges into it and into earlier layers, so that passes with the same of these share it. In
particular, a pass starts at the first layer that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
AT_ONCE = 2**19  # numbers of the residual stream in one batch


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
    def _places(self) -> dict[EdgeKey, int]:
        """The number of each edge."""
        return {key: number for number, key in enumerate(self.candidates)}

    @cached_property
    def _writers(self) -> dict[str, list[str]]:
        """The writers that each reader may see."""
        found: dict[str, list[str]] = {}
        for writer, reader in self.candidates:
            found.setdefault(reader, []).append(writer)
        return found

    @cached_property
    def _until(self) -> list[Array]:
        """For each layer, the edges into it and into earlier layers; the last are all edges."""
        layers = np.array([self._layer[reader] for _, reader in self.candidates])
        return [layers <= layer for layer in range(len(self.parameters.layers) + 1)]

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

    def _output(self, part: WritingPart, hidden: Mapping[str, Array]) -> Array:
        """What a head or a group of neurons adds to the residual stream; biases are nobody's."""
        weights = self.parameters.layers[part.layer]
        if part.head is not None:
            return np.asarray(hidden[f"blocks.{part.layer}.attn.hook_z"][..., part.head, :] @ weights.W_O[part.head])
        assert part.neurons is not None
        neurons = slice(*part.neurons)
        return np.asarray(hidden[f"blocks.{part.layer}.mlp.hook_post"][..., neurons] @ weights.W_out[neurons])

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
        patched = np.zeros((len(patches), len(self.candidates)), dtype=bool)
        for row, patch in zip(patched, patches, strict=True):
            row[[self._places[key] for key in patch]] = True
        starts = [min((self._layer[reader] for _, reader in patch), default=len(self._until)) for patch in patches]
        order = np.argsort(starts, kind="stable")
        size = max(1, AT_ONCE // clean.streams[0].size)

        def work(numbers: Array) -> Array:
            return read(_PatchedPass(self, clean, instead, patched[numbers]).logits())

        with blas_threads(1):
            parts = in_threads(work, [order[first : first + size] for first in range(0, len(order), size)])
        found = np.concatenate(parts)
        return np.asarray(found[np.argsort(order)])


class _PatchedPass:
    """One batch of patched passes, layer by layer. Passes that are equal so far are one *state*.

    Tensors are [state, input, position, ...]; `patched` [patch, edge] says which edges each pass patches.
    """

    def __init__(self, model: EdgePatching, clean: CleanPass, instead: Mapping[str, Array], patched: Array) -> None:
        self.model, self.clean, self.instead, self.patched = model, clean, instead, patched
        self.state = np.zeros(len(patched), dtype=int)  # of each patch
        self.first = np.zeros(1, dtype=int)  # a patch of each state
        self.start = next((n for n, edges in enumerate(model._until) if patched[:, edges].any()), len(model._until) - 1)
        self.stream = clean.streams[self.start][None]
        self.hidden: dict[str, Array] = {}
        self.seen: dict[str, tuple[Array, Array]] = {}
        used = {model.candidates[place][0] for place in np.flatnonzero(patched.any(axis=0))}
        self.later = [part for part in model.parts if part.name in used and part.layer >= self.start]
        apart = used - {part.name for part in self.later}
        self.changes = {name: ((instead[name] - clean.written[name])[None], self.state) for name in apart}
        """For each writer, what readers see more if they see its other output, in each of its states; these states."""

    def logits(self) -> Array:
        """The logits [patch, input, position, d_vocab_out]."""
        last = len(self.model.parameters.layers)
        for layer in range(self.start, last):
            self._branch(layer)
            self.stream = self._split(self._forward(start=layer, stop=layer + 1))
        self._branch(last)
        return self._split(self._forward(start=last))[self.state]

    def _forward(self, **layers: int) -> Array:
        return self.model._forward(self.stream.reshape(-1, *self.stream.shape[2:]), self._hook, **layers)

    def _split(self, tensor: Array) -> Array:
        return tensor.reshape(len(self.first), -1, *tensor.shape[1:])

    def _branch(self, layer: int) -> None:
        """The states of a layer: a state of the layer before has one for each set of patched edges into this layer."""
        rows = np.packbits(self.patched[:, self.model._until[layer]], axis=1)
        numbers: dict[bytes, int] = {}
        before, self.state = self.state, np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows])
        self.first = np.unique(self.state, return_index=True)[1]
        self.stream = self.stream[before[self.first]]

    def _hook(self, name: str, tensor: Array) -> Array | None:
        if name.endswith("hook_resid_mid"):
            self.stream = self._split(tensor)
        elif name.endswith(("hook_z", "hook_post")):
            self.hidden[name] = self._split(tensor)
            self._write(name)
        elif name == "logits":
            self._see(["unembed"])
            return self._again(tensor, "unembed", ..., self.model.parameters.W_U, 0)
        elif name.endswith(("attn.hook_q", "attn.hook_k", "attn.hook_v", "mlp.hook_pre")):
            return self._read_by_parts(name, tensor)
        return None

    def _write(self, name: str) -> None:
        """Keep the changes of the writers of a sub-layer."""
        _, layer, sublayer, _ = name.split(".")
        for part in self.later:
            if part.layer == int(layer) and (part.head is None) == (sublayer == "mlp"):
                self.changes[part.name] = self.instead[part.name] - self.model._output(part, self.hidden), self.state

    def _read_by_parts(self, name: str, tensor: Array) -> Array:
        """The queries, keys, values or neurons before their function, of the parts of one sub-layer."""
        _, layer, sublayer, hook = name.split(".")
        weights, side = self.model.parameters.layers[int(layer)], hook.removeprefix("hook_")
        parts = [
            part for part in self.model.parts if part.layer == int(layer) and (part.head is None) == (sublayer == "mlp")
        ]
        if side in ("q", "pre"):  # the first of the sub-layer's inputs
            self._see([reader for part in parts for reader in part.inputs])
        for part in parts:
            if part.neurons is not None:
                place = (..., slice(*part.neurons))
                tensor = self._again(tensor, part.name, place, weights.W_in[:, place[1]], weights.b_in[place[1]])
            elif part.head is not None:
                matrix, bias = (getattr(weights, f"{kind}_{side.upper()}")[part.head] for kind in "Wb")
                tensor = self._again(tensor, f"{part.name}.{side}", (..., part.head, slice(None)), matrix, bias)
        return tensor

    def _see(self, readers: Sequence[str]) -> None:
        """For each reader the states in which edges into it are patched, and the streams that it sees in them.

        The readers have the same writers.
        """
        writers = self.model._writers[readers[0]]
        places = np.array([[self.model._places[writer, reader] for writer in writers] for reader in readers])
        masks = self.patched[self.first][:, places]
        reached = np.asarray(masks.any(axis=2))
        states = [np.flatnonzero(column) for column in reached.T]
        seen = [np.empty((len(own), *self.stream.shape[1:]), self.stream.dtype) for own in states]
        filled = [iter(one) for one in seen]
        for state, mask in enumerate(masks):
            rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
            if not rows.size:
                continue
            changes = np.stack([self._change(writers[column], self.first[state]) for column in columns])
            chosen = mask[np.ix_(rows, columns)].astype(changes.dtype)
            moved = (chosen @ changes.reshape(len(columns), -1)).reshape(-1, *self.stream.shape[1:])
            for row, more in zip(rows.tolist(), moved, strict=True):
                np.add(self.stream[state], more, out=next(filled[row]))
        found = zip(readers, states, seen, strict=True)
        self.seen = {reader: (own, streams) for reader, own, streams in found if own.size}

    def _change(self, writer: str, patch: int) -> Array:
        """What a reader sees more if it sees the other output of a writer, in one patch."""
        changes, states = self.changes[writer]
        return np.asarray(changes[states[patch]])

    def _again(self, tensor: Array, reader: str, place: Any, matrix: Array, bias: Any) -> Array:
        """The tensor with what a reader computes from its patched stream, at its place."""
        if reader not in self.seen:
            return tensor
        states, seen = self.seen[reader]
        seen = seen if self.model.norm is None else self.model.norm(seen, np)
        rows = self._split(tensor)
        changed = rows[states]
        changed[place] = seen @ matrix + bias
        rows[states] = changed
        return rows.reshape(tensor.shape)
