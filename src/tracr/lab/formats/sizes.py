"""The layers and heads of a model in other tools, where all layers have the same number of heads and an MLP."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracr.adapters.huggingface.gpt2 import sizes_of as gpt2_sizes
from tracr.arguments import whole
from tracr.errors import FormatError, TracrError
from tracr.model.designed import DesignedModel
from tracr.model.running import RunnableModel
from tracr.natural.sites import Sites
from tracr.natural.twin_model import TwinModel
from tracr.runtime.uniform import common_sizes

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
    """The sizes of a compiled model, a variant, a compressed model or a twin; or of what has a `model`.

    Heads are as many as the model has in any other tool: in TransformerLens or in its GPT-2 checkpoint. Those that the
    model itself lacks are zeros there.
    """
    model = getattr(model, "model", model)
    if isinstance(model, TwinModel):
        return CircuitSizes(model.architecture.layers, model.architecture.heads, model.d_model)
    if not isinstance(model, RunnableModel):
        raise TracrError(f"{type(model).__name__} is no model with layers and heads", hint="pass a model or a subject")
    return CircuitSizes(
        len(model.parameters.layers), max(common_sizes(model.parameters).heads, _gpt2_heads(model)), model.d_model
    )


def _gpt2_heads(model: RunnableModel) -> int:
    """The number of heads of the model's GPT-2 checkpoint, which has layer norms; 0 if it cannot have one."""
    if not isinstance(model, DesignedModel):
        return 0
    try:
        normed = model if model.norm else model.with_layer_norm()
    except TracrError:
        return 0
    return gpt2_sizes(normed).heads
