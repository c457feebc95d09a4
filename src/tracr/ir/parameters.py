"""The weights of a transformer, named and shaped as in TransformerLens; every layer has its own sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["LayerParameters", "Parameters"]

Tensor = Any


@dataclass(frozen=True, eq=False)
class LayerParameters:
    """One block: heads [head, d_model, d_head] and an MLP [d_model, d_mlp]."""

    W_Q: Tensor
    b_Q: Tensor
    W_K: Tensor
    b_K: Tensor
    W_V: Tensor
    b_V: Tensor
    W_O: Tensor
    b_O: Tensor
    W_in: Tensor
    b_in: Tensor
    W_out: Tensor
    b_out: Tensor


PARTS = {field.name: "mlp" if field.name.endswith(("in", "out")) else "attn" for field in fields(LayerParameters)}
"""The name of each array of a layer, and the part of the layer it belongs to."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Everything the forward pass needs."""

    W_E: Tensor
    W_pos: Tensor
    layers: tuple[LayerParameters, ...]
    W_U: Tensor

    def map(self, f: Callable[[Tensor], Tensor]) -> Parameters:
        """`f` of every array: a cast, a move to another framework."""
        layers = tuple(LayerParameters(*(f(getattr(layer, name)) for name in PARTS)) for layer in self.layers)
        return Parameters(f(self.W_E), f(self.W_pos), layers, f(self.W_U))

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Every array under its TransformerLens state-dict name."""
        yield "embed.W_E", self.W_E
        yield "pos_embed.W_pos", self.W_pos
        for number, layer in enumerate(self.layers):
            for name, part in PARTS.items():
                yield f"blocks.{number}.{part}.{name}", getattr(layer, name)
        yield "unembed.W_U", self.W_U

    def show(self) -> str:
        """One line per array: its name and its shape."""
        return "\n".join(f"{name} {tuple(array.shape)}" for name, array in self.named())

    @staticmethod
    def of(weights: Mapping[str, Tensor]) -> Parameters:
        """The inverse of `named`, in any order."""
        layers: dict[int, dict[str, Tensor]] = {}
        for name, tensor in weights.items():
            if name.startswith("blocks."):
                _, number, _, field = name.split(".")
                layers.setdefault(int(number), {})[field] = tensor
        blocks = tuple(LayerParameters(**layers[number]) for number in sorted(layers))
        return Parameters(weights["embed.W_E"], weights["pos_embed.W_pos"], blocks, weights["unembed.W_U"])
