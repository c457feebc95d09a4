"""A forward pass as frameworks write it, over `params` alone: scores divided by √key_size, no help from our code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def residual_stream(params: Any, config: Any, ids: list[int]) -> Array:
    """The residual stream [position, d_model] after the last layer, in float32."""

    def linear(module: str, x: Array) -> Array:
        return np.asarray(x @ params[module]["w"] + params[module]["b"])

    def heads(x: Array) -> Array:
        return x.reshape(len(ids), config.num_heads, config.key_size).transpose(1, 0, 2)

    x = params["token_embed"]["embeddings"][ids] + params["pos_embed"]["embeddings"][: len(ids)]
    for number in range(config.num_layers):
        layer = f"transformer/layer_{number}"
        query, key, value = (heads(linear(f"{layer}/attn/{part}", x)) for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(config.key_size))
        if config.causal:
            scores = np.where(np.tri(len(ids), dtype=bool), scores, np.float32(-1e30))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ value
        x = x + linear(f"{layer}/attn/linear", mixed.transpose(1, 0, 2).reshape(len(ids), -1))
        x = x + linear(f"{layer}/mlp/linear_2", config.activation_function(linear(f"{layer}/mlp/linear_1", x)))
    assert x.dtype == np.float32
    return np.asarray(x)


def answer(model: Any, tokens: list[Any]) -> list[Any]:
    """What the residual stream says at the output's labels, BOS position left out; numbers raw."""
    stream = residual_stream(model.params, model.model_config, model.input_encoder.encode(tokens))[1:]
    place = {label: number for number, label in enumerate(model.residual_labels)}
    name = model.output_label
    if model.output_encoder.encoding_map is None:
        numbers = stream[:, place[name]].tolist()
        if f"{name}:None" not in place:
            return numbers
        nothing = stream[:, place[f"{name}:None"]] > 0.5
        return [None if none else number for none, number in zip(nothing, numbers, strict=True)]
    values = list(model.output_encoder.encoding_map)
    columns = [place[f"{name}:{value}"] for value in values]
    return [values[number] for number in stream[:, columns].argmax(axis=-1)]
