"""A subject cut at a place of its residual stream: the streams at every place, and the logits after one.

Places are the embedding (`blocks.0.hook_resid_pre`) and the stream after each sub-layer that has components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.ir.parameters import Parameters
from tracr.lab.methods.passes import activation_of, count_passes, model_of, patching_of
from tracr.natural.activations import in_numpy
from tracr.runtime.forward import forward

__all__ = ["StreamNetwork", "Suffix", "stream_network"]

Array = NDArray[Any]
Tensor = Any


@dataclass(frozen=True)
class Suffix:
    """The part of a transformer after a place; the functions without the weights, so that equal ones compare equal."""

    place: str
    causal: bool
    norm: Callable[[Any, Any], Any] | None
    activation: str
    """The name of the neurons' function."""

    def logits(self, parameters: Parameters, stream: Tensor, xp: Any, activation: Any) -> Tensor:
        """Logits [batch, position, d_vocab_out] of a pass that has this stream [batch, position, d_model] at the place.

        `activation` is the neurons' function in the framework `xp`.
        """
        layer, part = int(self.place.split(".")[1]), self.place.rpartition("_")[2]

        def hook(name: str, tensor: Tensor) -> Tensor | None:
            return stream if name == self.place else None  # attention before it has no effect any more

        start = layer + 1 if part == "post" else layer
        return forward(
            parameters, stream, xp, causal=self.causal, hook=hook, norm=self.norm, activation=activation, start=start
        )


@dataclass(frozen=True, eq=False)
class StreamNetwork:
    """A subject as a transformer whose residual stream can be read and replaced at `places`, in numpy and float64."""

    parameters: Parameters = field(repr=False)
    causal: bool
    norm: Callable[[Any, Any], Any] | None
    activation: str
    places: tuple[str, ...]

    @property
    def width(self) -> int:
        """The width of the residual stream."""
        return int(self.parameters.W_E.shape[1])

    def suffix(self, place: str) -> Suffix:
        """The transformer after a place."""
        return Suffix(place, self.causal, self.norm, self.activation)

    def streams(self, ids: Array) -> dict[str, Array]:
        """The residual stream [input, position, d_model] at every place."""
        seen: dict[str, Array] = {}

        def hook(name: str, tensor: Array) -> None:
            if name in self.places:
                seen[name] = tensor

        count_passes(len(ids))
        options: dict[str, Any] = {"causal": self.causal, "norm": self.norm, "activation": in_numpy(self.activation)}
        forward(self.parameters, ids, np, hook=hook, **options)
        return seen

    def logits_from(self, place: str, stream: Array) -> Array:
        """The logits of a pass that has this stream at the place."""
        count_passes(len(stream))
        return np.asarray(self.suffix(place).logits(self.parameters, stream, np, in_numpy(self.activation)))


def stream_network(subject: Any) -> StreamNetwork:
    """The network of a subject or a model."""
    model = model_of(subject)
    patching = patching_of(model)
    wide = model.parameters.map(lambda array: array.astype(np.float64))
    places = ["blocks.0.hook_resid_pre"]
    for number, layer in enumerate(wide.layers):
        places += [f"blocks.{number}.hook_resid_mid"] * bool(layer.W_Q.shape[0])
        places += [f"blocks.{number}.hook_resid_post"] * bool(layer.b_in.size)
    if not wide.layers:
        raise TracrError("a model without layers computes no variables", hint="use another case")
    return StreamNetwork(wide, patching.causal, patching.norm, activation_of(model), tuple(places))
