"""The size of a model, computed before its weights are made."""

from __future__ import annotations

from typing import NamedTuple

from tracr.ir.schedule import Layer, Schedule

__all__ = ["Size", "count_parameters", "layer_sizes", "size_of"]


class Size(NamedTuple):
    """The size of a model."""

    layers: int
    dimensions: int
    heads: int
    parameters: int


def size_of(schedule: Schedule, width: int) -> Size:
    """The size of a model with these layers and `width` dimensions."""
    heads = sum(1 for _ in schedule.heads())
    return Size(len(schedule.layers), width, heads, sum(count_parameters(schedule, width).values()))


def layer_sizes(layer: Layer) -> tuple[int, int, int]:
    """Heads, d_head and d_mlp of a layer."""
    d_head = max((head.rank for head in layer.heads), default=0)
    return len(layer.heads), d_head, sum(part.read.width for part in layer.mlps)


def count_parameters(schedule: Schedule, width: int) -> dict[str, int]:
    """How many weights each part of a model with `width` dimensions has."""
    options = schedule.options
    outputs = sum(len(variable.values) for _, variable in schedule.outputs)
    counts = {"embedding": width * (len(options.vocab) + options.max_seq_len + 3), "unembedding": width * outputs}
    for number, layer in enumerate(schedule.layers):
        heads, d_head, d_mlp = layer_sizes(layer)
        counts[f"attention {number}"] = heads * d_head * (4 * width + 3) + width
        counts[f"mlp {number}"] = d_mlp * (2 * width + 1) + width
    return counts
