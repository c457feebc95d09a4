"""The architecture of a twin: a standard pre-norm GPT-2 of any width, with the teacher's number of layers.

Layer norms have no gain and bias: those of GPT-2 can be multiplied into the weights that follow, and here they are.
Scores are not divided by √d_head; the query weights contain this factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracr.errors import TracrError
from tracr.natural.activations import activation_in
from tracr.natural.sites import Sites
from tracr.runtime.uniform import Sizes, layer_shapes

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["ACTIVATIONS", "NORM_EPSILON", "Architecture", "architecture_of", "plain_norm"]

ACTIVATIONS = ("gelu", "gelu_new", "relu")
NORM_EPSILON = 1e-5
Tensor = Any


@dataclass(frozen=True)
class Architecture:
    """The sizes of a twin, and the functions between its matrices."""

    layers: int
    width: int = 64
    d_head: int = 16
    d_mlp: int = 128
    layer_norm: bool = True
    activation: str = "gelu"

    @property
    def heads(self) -> int:
        """The number of heads in each layer."""
        return self.width // self.d_head

    @property
    def sites(self) -> Sites:
        """The nodes and edges."""
        return Sites(self.layers, self.heads)

    @property
    def norm(self) -> Callable[[Tensor, Any], Tensor] | None:
        """The layer norm in the form that the forward pass takes."""
        return plain_norm if self.layer_norm else None

    def act(self, xp: Any) -> Callable[[Tensor], Tensor]:
        """The neurons' function, over numpy or `jax.nn`."""
        return activation_in(self.activation, xp)

    def shapes(self, model: CompiledModel) -> dict[str, tuple[int, ...]]:
        """The shapes of the weights of a twin of a model, under their TransformerLens names."""
        own = model.parameters
        found: dict[str, tuple[int, ...]] = {
            "embed.W_E": (len(own.W_E), self.width),
            "pos_embed.W_pos": (len(own.W_pos), self.width),
        }
        for layer in range(self.layers):
            for name, shape in layer_shapes(Sizes(self.heads, self.d_head, self.d_mlp), self.width).items():
                part = "mlp" if name.endswith(("in", "out")) else "attn"
                found[f"blocks.{layer}.{part}.{name}"] = shape
        return {**found, "unembed.W_U": (self.width, own.W_U.shape[1])}


def plain_norm(stream: Tensor, xp: Any) -> Tensor:
    """A layer norm without gain and bias."""
    centred = stream - stream.mean(axis=-1, keepdims=True)
    return centred / xp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + NORM_EPSILON)


def architecture_of(
    model: CompiledModel, width: int, d_head: int, d_mlp: int, *, layer_norm: bool, activation: str
) -> Architecture:
    """The architecture of a twin of a model; it must have room for the model's heads."""
    if not hasattr(model, "parameters") or not hasattr(model, "n_layers"):
        raise TracrError(
            f"a twin needs a compiled model as its teacher, not a {type(model).__name__}", hint="use tracr.compile(...)"
        )
    for name, size in (("width", width), ("d_head", d_head), ("d_mlp", d_mlp)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise TracrError(f"{name} must be a positive integer, not {size!r}", hint=f"such as {name}=64")
    if width % d_head:
        raise TracrError(f"a width of {width} does not divide into heads of {d_head}", hint="use a multiple of d_head")
    if activation not in ACTIVATIONS:
        raise TracrError(f"there is no activation {activation!r}", hint=f"use one of {', '.join(ACTIVATIONS)}")
    least = max([1, *(len(layer.W_Q) for layer in model.parameters.layers)])
    if width // d_head < least:
        raise TracrError(
            f"the teacher has {least} heads in a layer, a twin of width {width} with heads of {d_head} has "
            f"{width // d_head}",
            hint=f"use width={least * d_head} or more, or a smaller d_head",
        )
    if not model.n_layers:
        raise TracrError("the model has no layers, so a twin has nothing to learn", hint="use a program with heads")
    return Architecture(model.n_layers, width, d_head, d_mlp, layer_norm, activation)
