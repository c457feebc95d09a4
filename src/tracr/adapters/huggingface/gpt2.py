"""Configuration and weights of a GPT-2 that computes the same as a model with layer norms.

In GPT-2 all layers have the same size, d_model is a multiple of the number of heads, and scores are divided by √d_head.
So missing heads and neurons are zeros, which add zero to the residual stream; dimensions beyond the model's are never
written; d_head is a power of 4, and queries are multiplied by √d_head, a power of 2: this scaling is exact.

**GELU.** gelu(y) = y Φ(y) differs from relu(y) by |y| Φ(-|y|) <= 0.1701, and so does the form with tanh. With inputs
multiplied by 2**24 and outputs divided by it, a neuron is off by at most 0.1701 * 2**-24 = 1.02e-8; powers of two cost
no rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.adapters.huggingface.head import WordHead
from tracr.ir.parameters import LayerParameters, Parameters

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = [
    *("ACTIVATIONS", "GPT2Shape", "GPT2Sizes", "config_json", "generation_json"),
    *("gpt2_tensors", "sizes_of", "stops", "tensors"),
]

Array = NDArray[Any]
ACTIVATIONS = {"relu": 1.0, "gelu": 2.0**24, "gelu_new": 2.0**24}
"""Each activation function, and the factor of its inputs."""
ROOMY = 1.25  # how much wider than necessary the model may be to have fewer heads


@dataclass(frozen=True)
class GPT2Shape:
    """The sizes of a GPT-2."""

    layers: int
    heads: int
    d_head: int
    d_mlp: int
    positions: int

    @property
    def d_model(self) -> int:
        """The width of the residual stream."""
        return self.heads * self.d_head


@dataclass(frozen=True)
class GPT2Sizes(GPT2Shape):
    """The sizes for a compiled model; `constant` is the dimension in which the last layer norm puts a 1."""

    constant: int


def sizes_of(model: DesignedModel) -> GPT2Sizes:
    """The narrowest GPT-2 that holds the model and a constant; of those nearly as narrow, the one with fewest heads."""
    layers, width = model.parameters.layers, model.d_model + 1
    least = max([1, *(layer.b_Q.shape[0] for layer in layers)])
    rank = max([1, *(layer.b_Q.shape[1] for layer in layers)])
    smallest = 4 ** math.ceil(math.log(rank, 4))
    choices = [(max(least, -(-width // d_head)), d_head) for d_head in (smallest * 4**n for n in range(8))]
    narrowest = min(heads * d_head for heads, d_head in choices)
    heads, d_head = min(choice for choice in choices if choice[0] * choice[1] <= ROOMY * narrowest)
    return GPT2Sizes(
        layers=max(1, len(layers)),
        heads=heads,
        d_head=d_head,
        d_mlp=max([1, *(layer.b_in.size for layer in layers)]),
        positions=model.options.max_seq_len + 1,
        constant=model.d_model,
    )


def config_json(sizes: GPT2Shape, head: WordHead, activation: str, epsilon: float) -> dict[str, Any]:
    """`config.json`; `epsilon` is that of the layer norms."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": len(head.words.words),
        "n_positions": sizes.positions,
        "n_embd": sizes.d_model,
        "n_layer": sizes.layers,
        "n_head": sizes.heads,
        "n_inner": sizes.d_mlp,
        "activation_function": activation,
        "layer_norm_epsilon": epsilon,
        "tie_word_embeddings": False,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "bos_token_id": head.words.bos,
        "eos_token_id": stops(head) or None,
        "pad_token_id": head.words.pad,
        "torch_dtype": "float32",
    }


def generation_json(positions: int, head: WordHead) -> dict[str, Any]:
    """`generation_config.json`: greedy, up to the longest input, and up to a word that is not a token."""
    return {
        "bos_token_id": head.words.bos,
        "eos_token_id": stops(head) or None,
        "pad_token_id": head.words.pad,
        "do_sample": False,
        "max_length": positions + 1,
    }


def stops(head: WordHead) -> list[int]:
    """The words that can be outputs but not inputs."""
    return sorted({number for _, number in head.decoded if not head.words.is_input(number)})


def tensors(model: DesignedModel, sizes: GPT2Sizes, head: WordHead, activation: str) -> dict[str, Array]:
    """The weights of a compiled model with layer norms."""
    assert model.norm is not None
    constant = np.zeros(sizes.d_model)
    constant[sizes.constant] = 1.0
    rows = _filled(head.rows, len(head.rows), sizes.d_model)
    rows[:, sizes.constant] = head.constants
    gain, scale = model.norm.gain, ACTIVATIONS[activation]
    return gpt2_tensors(model.parameters, sizes, rows, constant, gain=gain, scale=scale)


def gpt2_tensors(
    parameters: Parameters, sizes: GPT2Shape, rows: Array, bias: Array, *, gain: float = 1.0, scale: float = 1.0
) -> dict[str, Array]:
    """The weights, in float32, under their names in `GPT2LMHeadModel`.

    `rows` [word, d_model] are the head, `bias` is that of the last layer norm, `gain` the weight of all layer norms.
    The inputs of neurons are multiplied by `scale`.
    """
    width = sizes.d_model
    weight = np.full(width, gain)
    found = {
        "transformer.wte.weight": _filled(parameters.W_E, len(rows), width),
        "transformer.wpe.weight": _filled(parameters.W_pos, sizes.positions, width),
        "transformer.ln_f.weight": weight,
        "transformer.ln_f.bias": bias,
        "lm_head.weight": rows,
    }
    for number in range(sizes.layers):
        norms = {
            f"ln_{place}.{name}": array
            for place in (1, 2)
            for name, array in (("weight", weight), ("bias", 0 * weight))
        }
        block = {**norms, **_block(parameters.layers[number : number + 1], sizes, scale)}
        found |= {f"transformer.h.{number}.{name}": array for name, array in block.items()}
    return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in found.items()}


def _block(layers: tuple[LayerParameters, ...], sizes: GPT2Shape, scale: float) -> dict[str, Array]:
    """Attention and MLP of a layer (zeros without a layer), the inputs of neurons multiplied by `scale`."""
    width = sizes.d_model
    attn, mlp = np.zeros((3, width, sizes.heads, sizes.d_head)), np.zeros((width, sizes.d_mlp))
    b_attn, b_mlp = np.zeros((3, sizes.heads, sizes.d_head)), np.zeros(sizes.d_mlp)
    attn_out, mlp_out = np.zeros((sizes.heads, sizes.d_head, width)), np.zeros((sizes.d_mlp, width))
    b_attn_out, b_mlp_out = np.zeros(width), np.zeros(width)
    for layer in layers:
        heads, d_model, d_head = layer.W_Q.shape
        for place, (weight, bias, factor) in enumerate(
            ((layer.W_Q, layer.b_Q, math.sqrt(sizes.d_head)), (layer.W_K, layer.b_K, 1), (layer.W_V, layer.b_V, 1))
        ):
            attn[place, :d_model, :heads, :d_head] = factor * np.moveaxis(weight, 0, 1)
            b_attn[place, :heads, :d_head] = factor * bias
        attn_out[:heads, :d_head, :d_model], b_attn_out[:d_model] = layer.W_O, layer.b_O
        neurons = layer.b_in.size
        mlp[:d_model, :neurons], b_mlp[:neurons] = scale * layer.W_in, scale * layer.b_in
        mlp_out[:neurons, :d_model], b_mlp_out[:d_model] = layer.W_out / scale, layer.b_out
    return {
        "attn.c_attn.weight": np.concatenate([part.reshape(width, width) for part in attn], axis=1),
        "attn.c_attn.bias": b_attn.reshape(-1),
        "attn.c_proj.weight": attn_out.reshape(width, width),
        "attn.c_proj.bias": b_attn_out,
        "mlp.c_fc.weight": mlp,
        "mlp.c_fc.bias": b_mlp,
        "mlp.c_proj.weight": mlp_out,
        "mlp.c_proj.bias": b_mlp_out,
    }


def _filled(array: Array, *shape: int) -> Array:
    """The array, padded with zeros."""
    whole = np.zeros(shape)
    whole[tuple(slice(size) for size in array.shape)] = array
    return whole
