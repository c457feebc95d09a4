"""Models whose design is known: the compiler's own, and variants of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.explaining.components import explanations
from tracr.explaining.roles import Explanation
from tracr.ir.circuit import Circuit
from tracr.ir.compilation import Compilation
from tracr.ir.domains import Finite
from tracr.ir.graph import Graph
from tracr.ir.layout import Layout
from tracr.ir.ops import Aggregation
from tracr.ir.options import Options
from tracr.ir.parameters import Parameters
from tracr.ir.program import Program
from tracr.ir.schedule import Schedule
from tracr.ir.search import Search
from tracr.model.methods import ModelMethods, call
from tracr.model.program_variables import Variables, variables_of
from tracr.model.residual import Residual, residual_of
from tracr.model.running import RunnableModel
from tracr.model.variants.basis import Basis
from tracr.rasp.expressions import RASPExpr
from tracr.runtime.outputs import Output
from tracr.runtime.tensors import as_tensor, namespace_of, stream_of

if TYPE_CHECKING:
    from tracr.compiler.optimal.bounds import Bounds
    from tracr.model.compiled import CompiledModel
    from tracr.model.variants.layer_norm import LayerNorm
    from tracr.model.variants.variant import Variant

__all__ = ["DesignedModel", "outputs_of"]


class DesignedModel(ModelMethods, RunnableModel):
    """A transformer for a RASP program with the compiler's design: every direction and every component has a label.

    `plain` is the compiled model, with the results of all steps of the compiler. `variant` lists the changes since
    then, and says along which directions the labels are written. Labels and ground truth describe the compiler's
    design, not the changed weights.
    """

    @property
    @abstractmethod
    def plain(self) -> CompiledModel:
        """The model as it was compiled; for a variant, the compiled model that it was made from."""

    @property
    @abstractmethod
    def source(self) -> str:
        """The text of the program, if it is known."""

    @property
    @abstractmethod
    def variant(self) -> Variant:
        """The changes to the compiled model; without steps for the compiled model itself."""

    @property
    @abstractmethod
    def labelled(self) -> DesignedModel:
        """The model with one dimension per label; for a variant, with its weights (and noise) in this basis."""

    @abstractmethod
    def _holding(self, parameters: Parameters) -> Self:
        """The same model with these arrays as its weights, which have equal values."""

    @property
    def design(self) -> DesignedModel:
        """The model itself: its labels are its own."""
        return self

    # The results of the compiler's steps

    @property
    def options(self) -> Options:
        """The options of the compilation."""
        return self.plain.compilation.options

    @property
    def graph(self) -> Graph:
        """The traced program."""
        return self.plain.compilation.graph

    @property
    def expressions(self) -> tuple[RASPExpr, ...]:
        """The expressions that the graph's nodes were traced from; a loaded model has none."""
        return self.plain.compilation.expressions

    @property
    def program(self) -> Program:
        """The tabulated program."""
        return self.plain.compilation.program

    @property
    def circuit(self) -> Circuit:
        """The components that compute the program."""
        return self.plain.compilation.circuit

    @property
    def schedule(self) -> Schedule:
        """The layer of each component."""
        return self.plain.compilation.schedule

    @property
    def layout(self) -> Layout:
        """The dimensions of each variable."""
        return self.plain.compilation.layout

    @property
    def search(self) -> Search | None:
        """The search for a smaller model: the candidates and the choice; `None` for a loaded model."""
        return self.plain.compilation.search

    @cached_property
    def residual(self) -> Residual:
        """The labelled dimensions of the residual stream, with writers and readers."""
        return residual_of(self.layout)

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program: where the model stores each, or why it does not, and whether it can be set."""
        return variables_of(self)

    @cached_property
    def explanations(self) -> Mapping[str, Explanation]:
        """What every head and group of neurons does: its roles and a sentence, by its name in the ground truth."""
        return MappingProxyType(explanations(self.program, self.layout.schedule))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the compilation (`strict=True` refuses them); for most programs there are none.

        An aggregate may be assumed to select equal values; on inputs where it does not, the interpreter raises. Numbers
        that differ by rounding only may be assumed to be equal; the interpreter may distinguish them.
        """
        one = [node for node in self.program.sops.values() if isinstance(node.op, Aggregation) and node.op.assumed]
        selects = (f"{node.source}: is assumed to select values that are all equal" for node in one)
        return (*selects, *(assumption.sentence for assumption in self.program.assumptions))

    def bounds(self) -> Bounds:
        """Lower bounds on the sizes of a model of these components, and its actual sizes; prints as a table."""
        found: Bounds = call("bounds", self.plain.compilation)
        return found

    def show(self, stage: str = "assemble") -> str:
        """The text of a stage: trace, infer, lower (or translate), schedule, layout (or construct), assemble.

        "variables" lists the variables of the program with their states in the model.
        """
        stages: dict[str, Any] = {
            "trace": self.graph,
            "infer": self.program,
            "lower": self.circuit,
            "translate": self.circuit,
            "schedule": self.schedule,
            "layout": self.layout,
            "construct": self.layout,
            "variables": self.variables,
        }
        arguments.one_of("stage", stage, [*stages, "assemble"])
        if stage == "assemble":
            shapes = [f"{name} {tuple(array.shape)}" for name, array in self.parameters.named()]
            return "\n".join([repr(self), *shapes])
        return str(stages[stage].show())

    # The directions of the labels

    @property
    def basis(self) -> Basis:
        """The directions of the labelled coordinates: the axes of the residual stream, or those of a variant."""
        return self.variant.basis

    @property
    def directions(self) -> NDArray[Any]:
        """The directions [d_model] along which the labels of `residual` are written, a row each."""
        return self.basis.write

    @property
    def read_directions(self) -> NDArray[Any]:
        """The vectors that read the labels of `residual` from the residual stream, a column [d_model] each.

        `stream @ read_directions` gives the coordinates. With layer norms the columns include the anchor, and
        `normalised(stream) @ read_directions` gives the coordinates too. `directions @ read_directions` is the
        identity.
        """
        return self.basis.read

    def coordinates(self, stream: Any) -> Any:
        """The coordinate of each label of `residual` in a residual stream [..., d_model].

        The stream may be a numpy array, a torch tensor or a JAX array, on any device; the result has the same type.
        """
        return self.basis.get(stream_of(stream, self.d_model), range(self.layout.width))

    @property
    def norm(self) -> LayerNorm | None:
        """The layer norm before every reader of the residual stream, or `None`."""
        return self.variant.layer_norm

    def normalised(self, stream: Any) -> Any:
        """The residual stream, of any framework, as its readers see it: after the layer norm, if the model has one."""
        return self.norm(as_tensor(stream), namespace_of(stream)) if self.norm else stream

    def __copy__(self) -> Self:
        return self._holding(self.parameters)

    def __deepcopy__(self, memo: object) -> Self:
        """The model with a copy of the weights; immutable parts are shared."""
        return self._holding(self.parameters.map(np.copy))

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        layers = f"{self.n_layers} layer{'s' if self.n_layers != 1 else ''}"
        steps = "".join(f", {step}" for step in self.variant.steps)
        note = "" if self.own_weights else ", changed weights"
        stored = f", {self.options.dtype}" if self.options.format.short else ""
        return (
            f"{type(self).__name__}({names}: {layers}, {self.d_model} dimensions, "
            f"{self.n_parameters:,} parameters, level {self.options.level}{stored}{steps}{note})"
        )


def outputs_of(compilation: Compilation, error: float | None = None) -> tuple[Output, ...]:
    """The program's outputs, each with the logits that encode it and the `error` of its numbers, by default the proved.

    The outputs of a softened model have at least the error that its softness allows.
    """
    found, start = [], 0
    program, soft = compilation.program, compilation.options.soft
    for (name, number), (_, variable) in zip(program.outputs, compilation.circuit.outputs, strict=True):
        node = program.sops[number]
        own = variable.noise.error if error is None else error
        if soft and isinstance(node.domain, Finite):
            own = max(own, soft.error * node.domain.closest)
        found.append(Output(name, node.encoding, node.domain, start, start + len(variable.values), own))
        start += len(variable.values)
    return tuple(found)
