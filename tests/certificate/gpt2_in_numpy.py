"""GPT-2 in numpy, in float32, straight from the tensors of a checkpoint: for runs on every input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Tensors = Mapping[str, Array]


def gpt2_logits(tensors: Tensors, config: Mapping[str, Any], ids: Array, causal: bool) -> Array:
    """Logits [input, position, word] for ids [input, position]; without a causal mask nothing is hidden."""
    stream = tensors["transformer.wte.weight"][ids] + tensors["transformer.wpe.weight"][: ids.shape[1]]
    for number in range(config["n_layer"]):
        block = {
            name.removeprefix(f"transformer.h.{number}."): array
            for name, array in tensors.items()
            if name.startswith(f"transformer.h.{number}.")
        }
        stream = stream + _attention(block, _normed(stream, block, "ln_1", config), config["n_head"], causal)
        read = _normed(stream, block, "ln_2", config)
        hidden = np.maximum(read @ block["mlp.c_fc.weight"] + block["mlp.c_fc.bias"], 0)
        stream = stream + (hidden @ block["mlp.c_proj.weight"] + block["mlp.c_proj.bias"])
    return np.asarray(_normed(stream, tensors, "transformer.ln_f", config) @ tensors["lm_head.weight"].T)


def _normed(stream: Array, tensors: Tensors, name: str, config: Mapping[str, Any]) -> Array:
    centred = stream - stream.mean(-1, keepdims=True, dtype=np.float32)
    variance = (centred * centred).mean(-1, keepdims=True, dtype=np.float32)
    scaled = centred / np.sqrt(variance + np.float32(config["layer_norm_epsilon"]))
    return np.asarray(scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"])


def _attention(block: Tensors, stream: Array, heads: int, causal: bool) -> Array:
    inputs, positions, width = stream.shape
    parts = np.split(stream @ block["attn.c_attn.weight"] + block["attn.c_attn.bias"], 3, axis=-1)
    q, k, v = (part.reshape(inputs, positions, heads, width // heads).swapaxes(1, 2) for part in parts)
    scores = q @ k.swapaxes(-1, -2) / np.float32((width // heads) ** 0.5)
    if causal:
        scores = np.where(np.triu(np.ones((positions, positions), bool), 1), np.float32(-np.inf), scores)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    read = (powers / powers.sum(-1, keepdims=True)) @ v
    written = read.swapaxes(1, 2).reshape(stream.shape) @ block["attn.c_proj.weight"]
    return np.asarray(written + block["attn.c_proj.bias"])
