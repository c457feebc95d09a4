"""The gradient of a metric at the input of every reader, in numpy: one forward and one backward pass for all edges.

A reader (the queries, keys or values of a head, an MLP, the unembedding) sees the residual stream through a layer norm,
if the model has any. Its gradient is that of the metric with respect to what is added to this stream for this reader
alone. With G the gradient at the output of a sub-layer, that at its input is G plus the gradients of its readers.

Passes begin with the embedding [pair, position, d_model] and run in float32. A sub-layer can be made to write a given
output; no gradient passes through it then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.ground_truth.scores import EdgeKey
from tracr.ir.parameters import LayerParameters
from tracr.lab.methods.data import MethodData
from tracr.lab.methods.norm_slope import through_norm
from tracr.lab.methods.passes import BothPasses, activation_of, both_passes, count_passes
from tracr.natural.activations import slope_in_numpy
from tracr.runtime.forward import forward

__all__ = ["EdgeGradients", "edge_gradients"]

Array = NDArray[Any]
AT_ONCE = 2**20  # numbers of the residual stream in one batch
Gradients = dict[str, Array]


def edge_gradients(subject: Any, data: MethodData) -> EdgeGradients:
    """The gradients of a subject; the metric must have weights, because answers have no gradient."""
    if data.weights is None:
        raise InputError(
            "this method needs a metric with a gradient", hint="such as MethodData.of(pairs, case.metric(pairs))"
        )
    return EdgeGradients(both_passes(subject, data), np.asarray(data.weights, dtype=np.float32))


@dataclass(frozen=True, eq=False)
class EdgeGradients:
    """A subject with a linear metric [pair, position, logit]."""

    both: BothPasses
    metric: Array

    def sublayers(self, written: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of writers added up by sub-layer: the embedding, all heads of a layer, an MLP."""
        found: dict[str, Array] = {}
        for name, output in written.items():
            sublayer = ".".join(name.split(".")[:3])
            found[sublayer] = found[sublayer] + output if sublayer in found else output
        return found

    def attributions(self, given: Mapping[str, Array]) -> dict[EdgeKey, float]:
        """For each edge the mean over pairs of the writer's change times the gradient at the reader.

        The change is the output on the corrupted input minus that on the clean one. The gradient is that of a pass on
        the clean inputs in which the sub-layers in `given` write the outputs there.
        """
        clean, other, pairs = self.both.clean.written, self.both.corrupted.written, self.both.pairs
        rows = max(1, AT_ONCE * pairs // clean["embed"].size)
        found = dict.fromkeys(self.both.patching.candidates, 0.0)
        for start in range(0, pairs, rows):
            some = slice(start, start + rows)
            changes = np.stack([(other[name][some] - clean[name][some]).reshape(-1) for name in clean])
            readers = self._gradients(some, {name: output[some] for name, output in given.items()})
            numbers = changes @ np.stack([gradient.reshape(-1) for gradient in readers.values()]).T
            writer, reader = ({name: place for place, name in enumerate(names)} for names in (clean, readers))
            for key in found:
                found[key] += float(numbers[writer[key[0]], reader[key[1]]]) / pairs
        count_passes(pairs, pairs)
        return found

    def _gradients(self, some: slice, given: Mapping[str, Array]) -> Gradients:
        """The gradient of the summed metric at each reader's input, [pair, position, d_model]."""
        patching, kept = self.both.patching, dict[str, Array]()
        layers = patching.parameters.layers

        def keep(name: str, tensor: Array) -> Array | None:
            kept[name] = tensor
            block, _, hook = name.rpartition(".")
            if hook == "hook_attn_out" and f"{block}.attn" in given:
                return np.asarray(given[f"{block}.attn"] + layers[int(block.split(".")[1])].b_O)
            if hook == "hook_mlp_out" and f"{block}.mlp" in given:
                return np.asarray(given[f"{block}.mlp"] + layers[int(block.split(".")[1])].b_out)
            return None

        start = given.get("embed", self.both.clean.written["embed"][some])
        options: dict[str, Any] = {"causal": patching.causal, "norm": patching.norm, "activation": patching.activation}
        with np.errstate(invalid="ignore"):
            logits = forward(patching.parameters, start, np, hook=keep, start=0, **options)
        gradient = np.zeros_like(logits)
        gradient[:, : self.metric.shape[1], : self.metric.shape[2]] = self.metric[some]
        end = kept[f"blocks.{len(layers) - 1}.hook_resid_post"] if layers else start
        total = through_norm(patching.norm, end, gradient @ patching.parameters.W_U.T)
        found = {"unembed": total}
        for number in reversed(range(len(layers))):
            for sublayer, back in (("mlp", self._mlp), ("attn", self._heads)):
                name = f"blocks.{number}.{sublayer}"
                own = back(number, layers[number], kept, total)
                if name in given:
                    own = {reader: np.zeros_like(one) for reader, one in own.items()}
                found |= own
                total = sum(own.values(), total)
        return found

    def _mlp(self, number: int, layer: LayerParameters, kept: Gradients, total: Array) -> Gradients:
        if not layer.b_in.size:
            return {}
        slope = slope_in_numpy(activation_of(self.both.model))
        neurons = (total @ layer.W_out.T) * slope(kept[f"blocks.{number}.mlp.hook_pre"])
        stream = kept[f"blocks.{number}.hook_resid_mid"]
        return {f"blocks.{number}.mlp": through_norm(self.both.patching.norm, stream, neurons @ layer.W_in.T)}

    def _heads(self, number: int, layer: LayerParameters, kept: Gradients, total: Array) -> Gradients:
        """The gradients of all heads of a layer; tensors are [head, pair, position, ...]."""
        if not len(layer.W_Q):
            return {}
        q, k, v = (np.moveaxis(kept[f"blocks.{number}.attn.hook_{side}"], 2, 0) for side in "qkv")
        pattern = np.moveaxis(kept[f"blocks.{number}.attn.hook_pattern"], 1, 0)
        z = total @ layer.W_O.swapaxes(1, 2)[:, None]
        weights = z @ v.swapaxes(2, 3)
        scores = pattern * (weights - (weights * pattern).sum(axis=-1, keepdims=True))
        sides = {"q": scores @ k, "k": scores.swapaxes(2, 3) @ q, "v": pattern.swapaxes(2, 3) @ z}
        found: Gradients = {}
        for side, gradient in sides.items():
            matrix = getattr(layer, f"W_{side.upper()}").swapaxes(1, 2)[:, None]
            seen = through_norm(self.both.patching.norm, kept[f"blocks.{number}.hook_resid_pre"], gradient @ matrix)
            found |= {f"blocks.{number}.attn.{head}.{side}": one for head, one in enumerate(seen)}
        return found
