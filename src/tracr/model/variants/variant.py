"""The record of the changes to a compiled model, and its weights in another basis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tracr.ir.parameters import LayerParameters, Parameters
from tracr.model.variants.basis import Basis

if TYPE_CHECKING:
    from tracr.model.variants.layer_norm import LayerNorm

__all__ = ["Variant", "in_basis"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Variant:
    """The changes to a compiled model: the calls, in order, and their results; without steps for the model itself.

    `basis` has the directions of the labelled coordinates; `noise` is the standard deviation of the weights' noise.
    Without steps nothing is saved or certified of a variant, so that it may not have noise or layer norms.
    """

    steps: tuple[str, ...]
    basis: Basis
    noise: float = 0.0
    layer_norm: LayerNorm | None = None

    def __post_init__(self) -> None:
        if not self.steps and (self.noise or self.layer_norm):
            raise ValueError("a variant with noise or layer norms has a step that says so")


def in_basis(parameters: Parameters, write: Array, read: Array) -> Parameters:
    """The weights in other coordinates: a writer of x writes x @ write, and a reader with W reads with read @ W."""
    layers = tuple(
        LayerParameters(
            W_Q=read @ layer.W_Q,
            b_Q=layer.b_Q,
            W_K=read @ layer.W_K,
            b_K=layer.b_K,
            W_V=read @ layer.W_V,
            b_V=layer.b_V,
            W_O=layer.W_O @ write,
            b_O=layer.b_O @ write,
            W_in=read @ layer.W_in,
            b_in=layer.b_in,
            W_out=layer.W_out @ write,
            b_out=layer.b_out @ write,
        )
        for layer in parameters.layers
    )
    return Parameters(parameters.W_E @ write, parameters.W_pos @ write, layers, read @ parameters.W_U)
