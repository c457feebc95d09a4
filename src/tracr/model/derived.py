"""Models that have a compiled model: other weights for its program, with its tokens and outputs."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tracr.craft.numerics import OUTPUT_TOLERANCE
from tracr.ir.graph import Graph
from tracr.ir.options import Options
from tracr.ir.program import Program
from tracr.model.running import RunnableModel
from tracr.rasp.expressions import RASPExpr
from tracr.runtime.outputs import Output

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["DerivedModel"]


class DerivedModel(RunnableModel):
    """A transformer for the program of `compiled`, with weights that are not the compiler's own."""

    compiled: DesignedModel

    @property
    def design(self) -> DesignedModel:
        """The compiled model, which has the labels."""
        return self.compiled

    @property
    def options(self) -> Options:
        """The options of the compilation."""
        return self.compiled.options

    @property
    def graph(self) -> Graph:
        """The traced program."""
        return self.compiled.graph

    @property
    def expressions(self) -> tuple[RASPExpr, ...]:
        """The expressions that the graph's nodes were traced from; a loaded model has none."""
        return self.compiled.expressions

    @property
    def program(self) -> Program:
        """The tabulated program of the compiled model; `verify` compares this model with it."""
        return self.compiled.program

    @property
    def source(self) -> str:
        """The source text of the program, if known."""
        return self.compiled.source

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the compilation."""
        return self.compiled.assumptions

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs and their logits."""
        return tuple(replace(output, error=OUTPUT_TOLERANCE) for output in self.compiled.outputs)

    @property
    def norm(self) -> None:
        """None: the model has no layer norms."""

    @property
    def own_weights(self) -> bool:
        """False: the weights are not the compiler's own."""
        return False
