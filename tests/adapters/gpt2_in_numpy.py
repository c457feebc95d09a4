"""GPT-2 as its paper has it, from `config.json` and `model.safetensors` alone, with no help from our code."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

Array = NDArray[Any]


def gelu_new(x: Array) -> Array:
    """The form with tanh."""
    with np.errstate(over="ignore"):
        return np.asarray(
            0.5 * x * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x**3)))
        )


def gelu(x: Array) -> Array:
    """The exact form."""
    return np.asarray(0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))), dtype=x.dtype)


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "gelu": gelu, "gelu_new": gelu_new}


def logits(folder: Path, ids: Array, causal: bool | None = None) -> Array:
    """Logits [batch, position, word] in float32; with the attention that the folder of the model names by default."""
    config = json.loads((folder / "config.json").read_text())
    weights = safetensors.numpy.load_file(folder / "model.safetensors")
    if causal is None:
        causal = json.loads((folder / "tracr" / "model.json").read_text())["options"]["causal"]
    heads, length = config["n_head"], ids.shape[1]
    mask = np.tri(length, dtype=bool) if causal else np.ones((length, length), dtype=bool)

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(config["layer_norm_epsilon"]))
        return np.asarray(centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def linear(x: Array, name: str) -> Array:
        return np.asarray(x @ weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def split(x: Array) -> Array:
        return np.moveaxis(x.reshape(*x.shape[:2], heads, -1), 2, 1)

    x = weights["transformer.wte.weight"][ids] + weights["transformer.wpe.weight"][:length]
    for number in range(config["n_layer"]):
        block = f"transformer.h.{number}"
        q, k, v = map(split, np.split(linear(norm(x, f"{block}.ln_1"), f"{block}.attn.c_attn"), 3, axis=-1))
        scores = np.where(mask, q @ np.swapaxes(k, 2, 3) / np.float32(math.sqrt(q.shape[-1])), np.float32(-np.inf))
        pattern = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = pattern / pattern.sum(axis=-1, keepdims=True) @ v
        x = x + linear(np.moveaxis(mixed, 1, 2).reshape(x.shape), f"{block}.attn.c_proj")
        hidden = ACTIVATIONS[config["activation_function"]](linear(norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc"))
        x = x + linear(hidden, f"{block}.mlp.c_proj")
    assert x.dtype == np.float32
    return np.asarray(norm(x, "transformer.ln_f") @ weights["lm_head.weight"].T)
