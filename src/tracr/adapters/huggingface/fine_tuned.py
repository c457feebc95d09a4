"""Reads the weights of a checkpoint after more training, as a model with the same labels.

Everything that GPT-2 can train is kept. GPT-2's layer norms compute n(x) w + b, those of tracr n(x) g with one gain g.
So readers get W = diag(w/g) W' and an additional bias b W', for GPT-2's matrix W'. The head has no bias for b, so the
stream gets one more dimension, in which every position has a 1 and which no layer norm sees. Heads, neurons and
dimensions that were zeros are kept, because training may have changed them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.adapters.huggingface.gpt2 import GPT2Sizes
from tracr.adapters.huggingface.head import MARGIN, WordHead
from tracr.errors import FormatError
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.model.variants.basis import Directions
from tracr.model.variants.layer_norm import LayerNorm
from tracr.model.variants.variant_model import VariantModel

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.runtime.outputs import Output

__all__ = ["with_checkpoint"]

Array = NDArray[Any]
STEP = "weights of a checkpoint"


def with_checkpoint(
    model: DesignedModel, tensors: dict[str, Array], sizes: GPT2Sizes, head: WordHead, output: Output
) -> VariantModel:
    """The model with layer norms that a checkpoint was made from, with the checkpoint's tensors."""
    if head.kind == "classes":
        raise FormatError(
            f"the output {output.name} is a number that the checkpoint reads as classes, which cannot be read back",
            hint='save it with numbers="column", or compile rasp.categorical(program)',
        )
    norm = model.norm
    assert norm is not None
    checkpoint = _Checkpoint({name: array.astype(np.float64) for name, array in tensors.items()}, norm.gain)
    width = sizes.d_model
    W_E, W_pos = checkpoint["wte.weight"], checkpoint["wpe.weight"]
    parameters = Parameters(
        _wider(W_E[: len(model.vocabulary.ids)]),
        np.concatenate([W_pos, np.ones((len(W_pos), 1))], axis=1),
        tuple(checkpoint.layer(number, sizes) for number in range(sizes.layers)),
        _unembedding(model, checkpoint, head, output),
    )
    extra = width + 1 - model.d_model
    basis = Directions(np.pad(model.basis.write, ((0, 0), (0, extra))), np.pad(model.basis.read, ((0, extra), (0, 0))))
    variant = replace(
        model.variant,
        steps=(*model.variant.steps, STEP),
        basis=basis,
        layer_norm=LayerNorm(norm.epsilon, width),
    )
    return VariantModel(model.plain, parameters, variant, own_weights=False)


@dataclass(frozen=True)
class _Checkpoint:
    """GPT-2's tensors in float64; `gain` is the factor of tracr's layer norms."""

    tensors: dict[str, Array]
    gain: float

    def __getitem__(self, name: str) -> Array:
        return self.tensors[f"transformer.{name}"]

    def read(self, norm: str, weight: Array, bias: Array) -> tuple[Array, Array]:
        """A matrix [d_model, ...] that reads through a layer norm, and its bias, for tracr's layer norm."""
        scale, shift = self[f"{norm}.weight"], self[f"{norm}.bias"]
        return _taller((scale / self.gain)[:, None] * weight), bias + shift @ weight

    def layer(self, number: int, sizes: GPT2Sizes) -> LayerParameters:
        """A block."""
        block = f"h.{number}"
        attn, b_attn = self.read(
            f"{block}.ln_1", self[f"{block}.attn.c_attn.weight"], self[f"{block}.attn.c_attn.bias"]
        )
        shape = (3, sizes.heads, sizes.d_head)
        q, k, v = np.moveaxis(attn.reshape(len(attn), *shape), 0, 2)
        b_q, b_k, b_v = b_attn.reshape(shape)
        root = math.sqrt(sizes.d_head)
        W_O = _wider(self[f"{block}.attn.c_proj.weight"]).reshape(sizes.heads, sizes.d_head, -1)
        W_in, b_in = self.read(f"{block}.ln_2", self[f"{block}.mlp.c_fc.weight"], self[f"{block}.mlp.c_fc.bias"])
        return LayerParameters(
            W_Q=q / root,
            b_Q=b_q / root,
            W_K=k,
            b_K=b_k,
            W_V=v,
            b_V=b_v,
            W_O=W_O,
            b_O=_wider(self[f"{block}.attn.c_proj.bias"]),
            W_in=W_in,
            b_in=b_in,
            W_out=_wider(self[f"{block}.mlp.c_proj.weight"]),
            b_out=_wider(self[f"{block}.mlp.c_proj.bias"]),
        )


def _unembedding(model: DesignedModel, checkpoint: _Checkpoint, head: WordHead, output: Output) -> Array:
    """The head's rows as columns for the output; other outputs have no head and keep their compiled columns."""
    own = model.parameters.W_U
    rows = checkpoint.tensors["lm_head.weight"]
    weight, bias = checkpoint.read("ln_f", rows.T, np.zeros(len(rows)))
    weight[-1] = bias
    found = np.pad(own, ((0, len(weight) - len(own)), (0, 0)))
    if head.kind == "one-hot":
        found[:, output.start : output.stop] = weight[:, [number for _, number in head.decoded]] / MARGIN
    else:
        numbers = [len(rows) - 1, *(number for _, number in head.decoded)]
        found[:, output.start : output.stop] = weight[:, numbers]
    return found


def _wider(array: Array) -> Array:
    """Weights that write to the stream, with zeros for the dimension of ones."""
    return np.concatenate([array, np.zeros((*array.shape[:-1], 1))], axis=-1)


def _taller(array: Array) -> Array:
    """Weights that read the stream, with zeros for the dimension of ones."""
    return np.concatenate([array, np.zeros((1, *array.shape[1:]))])
