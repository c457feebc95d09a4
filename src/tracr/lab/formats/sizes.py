"""The layers and heads of a model in other tools, where all layers have the same number of heads and an MLP."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracr.adapters.huggingface.gpt2 import sizes_of as gpt2_sizes
from tracr.arguments import whole
from tracr.errors import FormatError
from tracr.natural.sites import Sites
from tracr.natural.twin_model import TwinModel

__all__ = ["MOST_LAYERS", "MOST_WRITERS", "CircuitSizes", "sizes_of"]

MOST_LAYERS, MOST_WRITERS = 1_000, 10_000


@dataclass(frozen=True)
class CircuitSizes:
    """The number of layers, of heads in each layer, and the width of the residual stream."""

    layers: int
    heads: int
    width: int = 1

    def __post_init__(self) -> None:
        for name, least in (("layers", 0), ("heads", 1), ("width", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least, error=FormatError))
        if self.layers > MOST_LAYERS or self.layers * (self.heads + 1) > MOST_WRITERS:
            raise FormatError(
                f"{self.layers:,} layers of {self.heads:,} heads are more than the {MOST_LAYERS:,} layers and "
                f"{MOST_WRITERS:,} heads and MLPs that are read",
                hint="give the sizes of the model",
            )

    @cached_property
    def sites(self) -> Sites:
        """All writers and readers."""
        return Sites(self.layers, self.heads)


def sizes_of(model: Any) -> CircuitSizes:
    """The sizes of a model that was compiled, or of a twin; or of what has a `model`.

    Heads are those of the GPT-2 checkpoint, which has the most: TransformerLens has as many as the largest layer. Heads
    that the model itself lacks are zeros there.
    """
    model = getattr(model, "model", model)
    if isinstance(model, TwinModel):
        return CircuitSizes(model.architecture.layers, model.architecture.heads, model.d_model)
    return CircuitSizes(model.n_layers, gpt2_sizes(model).heads, model.d_model)
