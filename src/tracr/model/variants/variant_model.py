"""A variant of a compiled model, as a model: it has the compiled model, and other weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from tracr.craft.numerics import OUTPUT_TOLERANCE
from tracr.ir.compilation import Compilation
from tracr.ir.parameters import Parameters
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel, outputs_of
from tracr.model.setting import Intervention
from tracr.model.variants.basis import Axes, Directions
from tracr.model.variants.variant import Variant, in_basis
from tracr.runtime.outputs import Output

if TYPE_CHECKING:
    from tracr.model.variants.layer_norm import LayerNorm

__all__ = ["VariantModel", "changed", "with_other_weights"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class VariantModel(DesignedModel):
    """A compiled model with other weights, and the labels and the program of the compiled model.

    `changes` says how the weights were made from the compiler's weights (`rotated`, `with_noise`, `with_layer_norm`).
    `own_weights` is false if they were changed in any other way.
    """

    compiled: CompiledModel
    weights: Parameters
    changes: Variant
    own_weights: bool = True

    @property
    def plain(self) -> CompiledModel:
        """The compiled model that it was made from."""
        return self.compiled

    @property
    def compilation(self) -> Compilation:
        """The compilation of the compiled model."""
        return self.compiled.compilation

    @property
    def source(self) -> str:
        """The text of the program, if it is known."""
        return self.compiled.source

    @property
    def parameters(self) -> Parameters:
        """The weights of the model as it runs."""
        return self.weights

    @property
    def variant(self) -> Variant:
        """The changes to the compiled model."""
        return self.changes

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs, each with the logits that encode it."""
        return outputs_of(self.compilation, OUTPUT_TOLERANCE)

    @cached_property
    def labelled(self) -> VariantModel:
        """The model with one dimension per label, with its weights (and noise) in this basis."""
        if isinstance(self.basis, Axes):
            return self
        weights = in_basis(self.weights, self.basis.read, self.basis.write)
        return VariantModel(self.plain, weights, self.plain.variant, self.own_weights and not self.variant.noise)

    def _holding(self, parameters: Parameters) -> Self:
        return replace(self, weights=parameters)

    def _intervention(
        self, changes: object, inputs: list[list[Any]], padded: list[int], *, single: bool
    ) -> Intervention:
        return Intervention(self, changes, inputs, padded, single=single, checked=False)


def with_other_weights(model: DesignedModel, weights: Parameters) -> VariantModel:
    """The model with weights that were not made by a known change."""
    return VariantModel(model.plain, weights, model.variant, own_weights=False)


def changed(
    model: DesignedModel,
    step: str,
    *,
    basis: tuple[Array, Array] | None = None,
    parameters: Parameters | None = None,
    noise: float = 0.0,
    layer_norm: LayerNorm | None = None,
) -> VariantModel:
    """The model after one more step: a change of basis (write, read), or other weights."""
    before, weights = model.variant, parameters or model.parameters
    here = Directions(model.basis.write, model.basis.read)
    if basis is not None:
        write, read = basis
        here = Directions(here.write @ write, read @ here.read)
        weights = in_basis(weights, write, read)
    variant = Variant(
        steps=(*before.steps, step),
        basis=here,
        noise=math.hypot(noise, before.noise),
        layer_norm=layer_norm or before.layer_norm,
    )
    return VariantModel(model.plain, weights, variant, model.own_weights)
