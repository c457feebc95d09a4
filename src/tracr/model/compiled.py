"""The compiled model: a compilation, and running it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from tracr.ir.compilation import Compilation
from tracr.ir.parameters import Parameters
from tracr.model.designed import DesignedModel, outputs_of
from tracr.model.setting import Intervention
from tracr.model.variants.basis import Axes
from tracr.model.variants.variant import Variant
from tracr.runtime.outputs import Output

__all__ = ["CompiledModel"]


@dataclass(frozen=True, eq=False, repr=False)
class CompiledModel(DesignedModel):
    """A transformer that computes a RASP program, with the compiler's own weights.

    `compilation` has the results of all steps of the compiler. `source` is the text of the program, if it is known.
    """

    compilation: Compilation
    source: str = field(default="")

    @property
    def plain(self) -> CompiledModel:
        """The model itself."""
        return self

    @property
    def labelled(self) -> CompiledModel:
        """The model itself: every label has a dimension."""
        return self

    @property
    def own_weights(self) -> bool:
        """True: the weights are the compiler's own."""
        return True

    @property
    def made_for(self) -> str:
        """The number format that the compiler made the weights for."""
        return self.options.dtype

    @property
    def parameters(self) -> Parameters:
        """The weights."""
        return self.compilation.parameters

    @cached_property
    def variant(self) -> Variant:
        """No changes; the labels are written along the axes of the residual stream."""
        return Variant((), Axes(self.layout.width))

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs, each with the logits that encode it."""
        return outputs_of(self.compilation)

    def _holding(self, parameters: Parameters) -> Self:
        return replace(self, compilation=replace(self.compilation, parameters=parameters))

    def _intervention(
        self, changes: object, inputs: list[list[Any]], padded: list[int], *, single: bool
    ) -> Intervention:
        return Intervention(self, changes, inputs, padded, single=single, checked=True)
