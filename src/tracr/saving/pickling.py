"""Pickles models: the tabulated program and the weights, without expressions and user functions.

Unpickling runs the compiler's later steps on the program, as loading a folder does. It checks that the pickled labels
and weights are those that this version of the compiler makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracr.compiler.pipeline import compile_tabulated
from tracr.errors import FormatError
from tracr.ir.circuit import Circuit
from tracr.ir.graph import Graph
from tracr.ir.parameters import Parameters
from tracr.ir.program import Program
from tracr.ir.schedule import PlacedCircuit
from tracr.ir.switches import PassName
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel
from tracr.model.variants.variant import Variant
from tracr.model.variants.variant_model import VariantModel
from tracr.saving.json_reader import Reader
from tracr.saving.models import as_variant, with_saved_weights
from tracr.saving.schedule_json import read_schedule, schedule_json

__all__ = ["pickled"]


@dataclass(frozen=True, eq=False)
class Pickled:
    """The pickled form of a model."""

    program: Program
    graph: Graph
    source: str
    schedule: dict[str, Any] | None
    parameters: Parameters
    variant: Variant
    own_weights: bool
    labels: tuple[str, ...]

    def restored(self) -> DesignedModel:
        """The model."""
        compiled = CompiledModel(compile_tabulated(self.graph, self.program, self._schedule_of()), self.source)
        if tuple(compiled.residual.labels) != self.labels:
            raise FormatError("the pickled model has other labels than its program compiles to", hint=OTHER_VERSION)
        if not self.own_weights:
            return VariantModel(compiled, self.parameters, self.variant, own_weights=False)
        model = as_variant(compiled, self.variant) if self.variant.steps else compiled
        try:
            return with_saved_weights(model, dict(self.parameters.named()))
        except FormatError as error:
            raise FormatError(
                f"the pickled model cannot be restored: {error.diagnostic.what}", hint=OTHER_VERSION
            ) from None

    def _schedule_of(self) -> Callable[[Circuit], PlacedCircuit] | None:
        return None if self.schedule is None else read_schedule(Reader(self.schedule, "the pickled schedule"))


OTHER_VERSION = (
    "another version of tracr pickled it: store models with model.save, which other versions can compile again"
)


def pickled(model: DesignedModel) -> tuple[Any, ...]:
    """The `__reduce__` tuple of a model."""
    schedule = schedule_json(model.schedule) if model.options.on(PassName.SOLVE) else None
    parts = Pickled(
        model.program,
        model.graph,
        model.source,
        schedule,
        model.parameters,
        model.variant,
        model.own_weights,
        tuple(model.residual.labels),
    )
    return Pickled.restored, (parts,)
