"""Runs the model with edges ablated.

Ablating an edge changes one input of one reader: in the slots of the edge, this input sees the ablated values instead
of the writer's. All other readers see the true values. Hooks on the forward pass do this: they compute the queries,
keys, values, neurons or logits again from the changed residual stream.

If slots are cleared and used again (level 2), several writers add up in them. The input then sees the content of the
slots plus the difference between the ablated values and those that the edge's source wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError, TracrError
from tracr.ground_truth.data import Edge, GroundTruth, ModelNode
from tracr.model.verification import differs
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.ir.parameters import LayerParameters

__all__ = ["Ablation", "Ablations", "RecordedPass", "check_ablation", "position_means", "without_near_ties"]

Ablation = Literal["zero", "mean", "resample"]
HELD = 2**28  # most numbers of the residual stream in memory

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class RecordedPass:
    """A forward pass: the residual stream before each layer and after the last, the logits, and `hidden`.

    `hidden` holds the results of all heads and neurons of a layer, by the names of their hooks, before their output
    matrices.
    """

    before: tuple[Array, ...]
    hidden: Mapping[str, Array]
    logits: Array


def check_ablation_name(ablation: str) -> None:
    """Refuse an unknown ablation."""
    if ablation not in get_args(Ablation):
        raise TracrError(f"no ablation {ablation!r}", hint=f"there are {', '.join(get_args(Ablation))}")


def check_ablation(truth: GroundTruth, ablation: str) -> None:
    """Refuse an unknown ablation, and a model whose edges are not known."""
    check_ablation_name(ablation)
    if not truth.model.own_weights:
        raise TracrError(
            "the weights are not the compiler's own, so other components may also write the dimensions of an edge",
            hint="ablate whole activations, with model.run(tokens, hook=...) or in TransformerLens",
        )


def position_means(held: Array, token: NDArray[np.bool_]) -> Array:
    """The mean at each position of an activation [input, position, ...], over the inputs that have a token there."""
    counted = token.copy()
    counted[:, ~counted.any(axis=0)] = True  # BOS, and positions that are PAD in every input
    means = np.where(counted[..., None], held, 0).sum(axis=0, dtype=np.float64)
    means /= counted.sum(axis=0)[:, None]
    return np.broadcast_to(means.astype(held.dtype), held.shape)


def without_near_ties(outputs: Sequence[Output], logits: Array) -> Array:
    """The logits; those of one-hot outputs are rounded, so that the first value wins a tie."""
    logits = logits.copy()
    for output in outputs:
        if output.encoding is Encoding.CATEGORICAL:
            logits[..., output.start : output.stop] = logits[..., output.start : output.stop].round(4)
    return logits


class Ablations:
    """The model on one batch of data, with any edges ablated.

    Inputs on which the program raises are left out; `kept` lists the others. `clean` is the pass without ablations.
    """

    def __init__(self, truth: GroundTruth, data: Sequence[Sequence[Value]], ablation: Ablation, seed: int) -> None:
        check_ablation(truth, ablation)
        self.model = truth.model
        self.edges = truth.edges()
        self.nodes: dict[str, ModelNode] = {node.id: node for node in truth.nodes()}
        self.parameters = self.model.cast(np.float32)
        self.kept, self.ids, self.given, self.real = self._encode(data)
        places = np.arange(self.ids.shape[1])
        self.token = (places >= 1) & (places <= np.array(self.real)[:, None])
        """The positions with a token, without BOS and PAD."""
        self.clean = self._clean()
        self.ablation, self.partner = ablation, self._partners(seed) if ablation == "resample" else None
        self.turns = any(edge.cancelled for edge in self.edges)
        self._replaced: dict[int, Array] = {}
        self.expected = self._codes(self.clean)

    def _encode(self, data: Sequence[Sequence[Value]]) -> tuple[list[int], NDArray[np.int64], list[int], list[int]]:
        """The inputs on which the program does not raise, their ids, and their lengths with and without padding."""
        if isinstance(data, str) or not len(data):
            raise InputError("the data must be a list of inputs", hint='such as ["ab", "ba"], or lists of tokens')
        ids, given, real = self.model.vocabulary.encode(data)
        if not all(real):
            raise InputError("the data has an input without tokens", hint="leave it out")
        tokens = [self.model.vocabulary.decode(row[1 : n + 1]) for row, n in zip(ids.tolist(), real, strict=True)]
        kept = np.flatnonzero(~evaluate_batch(self.model.program, tokens).errors).tolist()
        if not kept:
            raise InputError("the program raises on every input of the data", hint="use other inputs")
        held = len(kept) * ids.shape[1] * self.model.d_model * (4 * self.model.n_layers + 3)
        if held > HELD:
            raise InputError(
                f"the residual streams of {len(kept):,} inputs do not fit in memory",
                hint=f"a sample of {len(kept) * HELD // held:,} fits",
            )
        return kept, ids[kept], [given[row] for row in kept], [real[row] for row in kept]

    def _clean(self) -> RecordedPass:
        embedding = self.parameters.W_E[self.ids] + self.parameters.W_pos[: self.ids.shape[1]]
        return self.run(frozenset(), RecordedPass((embedding,), {}, embedding))

    def _partners(self, seed: int) -> NDArray[np.intp]:
        """For each input another input of the same length."""
        rng = np.random.default_rng(seed)
        partner = np.arange(len(self.ids))
        lengths = np.array(self.real)
        for length in np.unique(lengths):
            cycle = rng.permutation(np.flatnonzero(lengths == length))
            partner[cycle] = np.roll(cycle, 1)
        if (partner == np.arange(len(self.ids))).all():
            raise InputError(
                "no two inputs of the data have the same length, so none can be resampled",
                hint="add inputs of the same length",
            )
        return partner

    def instead(self, number: int) -> Array:
        """The values that replace those of an ablated edge: [input, position, slot]."""
        if number not in self._replaced:
            held = self.carried(self.clean, number)
            if self.ablation == "zero":
                held = np.zeros_like(held)
            elif self.partner is not None:
                held = held[self.partner]
            else:
                held = position_means(held, self.token)
            self._replaced[number] = held
        return self._replaced[number]

    def carried(self, stream: RecordedPass, number: int) -> Array:
        """The values that the source of an edge wrote into its slots."""
        edge = self.edges[number]
        return np.asarray(self.model.basis.get(self._output(stream, self.nodes[edge.source]), edge.slots))

    def written(self, stream: RecordedPass, node: ModelNode) -> Array:
        """The values that a node writes."""
        slots = [slot for one in node.writes for slot in one.slots]
        return np.asarray(self.model.basis.get(self._output(stream, node), slots))

    def _output(self, stream: RecordedPass, node: ModelNode) -> Array:
        """The values that a node adds to the residual stream."""
        if node.layer is None:
            return stream.before[0]
        weights = self.parameters.layers[node.layer]
        if node.head is not None:
            return np.asarray(
                stream.hidden[f"blocks.{node.layer}.attn.hook_z"][:, :, node.head] @ weights.W_O[node.head]
            )
        assert node.neurons is not None
        neurons = slice(*node.neurons)
        return np.asarray(stream.hidden[f"blocks.{node.layer}.mlp.hook_post"][..., neurons] @ weights.W_out[neurons])

    def layer(self, edge: Edge) -> int:
        """The layer an edge leads into."""
        layer = self.nodes[edge.target].layer
        return self.model.n_layers if layer is None else layer

    @cached_property
    def _readers(self) -> list[tuple[str, int, slice | int | None]]:
        """For each edge the activation that its reader computes from it: name, layer, and the head or neurons."""
        found: list[tuple[str, int, slice | int | None]] = []
        for edge in self.edges:
            node = self.nodes[edge.target]
            if node.head is not None:
                found.append((f"attn.hook_{edge.input}", self.layer(edge), node.head))
            elif node.neurons is not None:
                found.append(("mlp.hook_pre", self.layer(edge), slice(*node.neurons)))
            else:
                found.append(("logits", self.layer(edge), None))
        return found

    def run(self, ablated: frozenset[int], known: RecordedPass, start: int = 0) -> RecordedPass:
        """A forward pass with edges ablated, from layer `start` on; earlier activations are those of `known`."""
        changes: dict[tuple[str, int], dict[Any, list[int]]] = {}
        for number in sorted(ablated):
            name, layer, part = self._readers[number]
            key = (part.start, part.stop) if isinstance(part, slice) else part
            changes.setdefault((name, layer), {}).setdefault(key, []).append(number)
        streams = [known.before[start]]
        hidden = {name: known.hidden[name] for name in known.hidden if int(name.split(".")[1]) < start}

        def hook(name: str, tensor: Array) -> Array | None:
            if name == "hook_embed":
                return known.before[start]
            if name == "hook_pos_embed":
                return np.zeros_like(tensor)
            layer = self.model.n_layers
            if name.startswith("blocks."):
                _, number, name = name.split(".", 2)
                layer = int(number) + start
            if name in ("hook_resid_mid", "hook_resid_post"):
                streams.append(tensor)
            if name in ("attn.hook_z", "mlp.hook_post"):
                hidden[f"blocks.{layer}.{name}"] = tensor
            parts = changes.get((name, layer))
            if not parts:
                return None
            return self._again(name, layer, tensor, RecordedPass((known.before[0], streams[-1]), hidden, tensor), parts)

        shortened = replace(self.parameters, layers=self.parameters.layers[start:])
        logits = self.model.forward(shortened, self.ids, hook)
        return RecordedPass((*known.before[:start], *streams[::2]), hidden, logits)

    def _again(self, name: str, layer: int, tensor: Array, stream: RecordedPass, parts: dict[Any, list[int]]) -> Array:
        """An activation in which some heads or neurons are computed from a residual stream with ablated edges."""
        changed = tensor.copy()
        for part, numbers in parts.items():
            seen = self.model.normalised(self._without(stream, numbers))
            if name == "logits":
                return np.asarray(seen @ self.parameters.W_U)
            weights: LayerParameters = self.parameters.layers[layer]
            if name == "mlp.hook_pre":
                neurons = slice(*part)
                changed[..., neurons] = seen @ weights.W_in[:, neurons] + weights.b_in[neurons]
            else:
                side = name[-1].upper()
                matrix, bias = getattr(weights, f"W_{side}")[part], getattr(weights, f"b_{side}")[part]
                changed[:, :, part] = seen @ matrix + bias
        return changed

    def logits(self, stream: RecordedPass) -> Array:
        """The logits; those of one-hot outputs are rounded, so that the first value wins a tie."""
        return without_near_ties(self.model.outputs, stream.logits)

    def _codes(self, stream: RecordedPass) -> list[Array]:
        logits = self.logits(stream)
        return [output.codes(logits) for output in self.model.outputs]

    def changed(self, stream: RecordedPass) -> bool:
        """Whether an output at some token differs from that of the whole model."""
        return any(
            bool((differs(output.domain, expected, got) & self.token).any())
            for output, expected, got in zip(self.model.outputs, self.expected, self._codes(stream), strict=True)
        )

    def _without(self, stream: RecordedPass, numbers: list[int]) -> Array:
        """The residual stream that a reader sees with edges ablated."""
        seen, basis = stream.before[-1], self.model.basis
        for number in numbers:
            slots, value = self.edges[number].slots, self.instead(number)
            if self.turns:
                value = basis.get(seen, slots) + (value - self.carried(stream, number))
            seen = basis.put(seen, slots, value)
        return seen
