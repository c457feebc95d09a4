"""The compiled model: what the compiler made of a program, run on tokens, with labels for its directions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.craft.numerics import OUTPUT_TOLERANCE
from tracr.ir.circuit import Circuit
from tracr.ir.compilation import Compilation
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
from tracr.model.setting import Intervention
from tracr.model.variants.basis import Axes, Basis
from tracr.model.variants.variant import Variant, in_basis
from tracr.rasp.expressions import RASPExpr
from tracr.runtime.outputs import Output
from tracr.runtime.tensors import as_tensor, namespace_of, stream_of

if TYPE_CHECKING:
    from tracr.compiler.optimal.bounds import Bounds
    from tracr.model.variants.layer_norm import LayerNorm

__all__ = ["CompiledModel"]


@dataclass(frozen=True, eq=False)
class CompiledModel(ModelMethods, RunnableModel):
    """A transformer that computes a RASP program: a compilation, and running it.

    `compilation` is what each step of the compiler made, its weights included. A model may run with other weights:
    `changed` are these. `variant` says how they came from the compiler's (`rotated`, `with_noise`, `with_layer_norm`).
    `certified` says that nothing else was done to them; labels and ground truth say what the compiler designed,
    whatever the weights are. `source` is the text the program was written as, where that is known.
    """

    compilation: Compilation
    source: str = field(default="", repr=False)
    variant: Variant | None = None
    certified: bool = True
    changed: Parameters | None = None

    # What the compiler made

    @property
    def options(self) -> Options:
        """What the program was compiled with."""
        return self.compilation.options

    @property
    def graph(self) -> Graph:
        """The traced program."""
        return self.compilation.graph

    @property
    def expressions(self) -> tuple[RASPExpr, ...]:
        """The expressions that the graph's nodes were traced from; a loaded model has none."""
        return self.compilation.expressions

    @property
    def program(self) -> Program:
        """The tabulated program."""
        return self.compilation.program

    @property
    def circuit(self) -> Circuit:
        """The components that compute the program."""
        return self.compilation.circuit

    @property
    def schedule(self) -> Schedule:
        """The layers that the components are in."""
        return self.compilation.schedule

    @property
    def layout(self) -> Layout:
        """The dimensions that the variables are in."""
        return self.compilation.layout

    @property
    def search(self) -> Search | None:
        """What the compiler tried to make the model smaller; a loaded model does not know."""
        return self.compilation.search

    @property
    def parameters(self) -> Parameters:
        """The weights that the model runs with."""
        return self.compilation.parameters if self.changed is None else self.changed

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs and how the logits hold them."""
        found, start = [], 0
        own = self.certified and self.variant is None
        for (name, number), (_, variable) in zip(self.program.outputs, self.circuit.outputs, strict=True):
            node = self.program.sops[number]
            error = variable.noise.error if own else OUTPUT_TOLERANCE
            found.append(Output(name, node.encoding, node.domain, start, start + len(variable.values), error))
            start += len(variable.values)
        return tuple(found)

    @cached_property
    def residual(self) -> Residual:
        """The labelled dimensions of the residual stream, with writers and readers."""
        return residual_of(self.layout)

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program: where the model keeps each, or why it does not; which of them can be set."""
        return variables_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What had to be assumed for the program to be compiled (`strict=True` refuses instead); mostly nothing.

        Where an aggregate is assumed to select one value, the interpreter raises on inputs for which it does not. Where
        numbers that differ by rounding only are taken for one, the interpreter may tell them apart.
        """
        one = [node for node in self.program.sops.values() if isinstance(node.op, Aggregation) and node.op.assumed]
        selects = (f"{node.source}: is assumed to select values that are all equal" for node in one)
        return (*selects, *(assumption.sentence for assumption in self.program.assumptions))

    def bounds(self) -> Bounds:
        """What the sizes of a model of these components cannot go below, beside what was reached; prints as a table."""
        found: Bounds = call("bounds", self.compilation)
        return found

    def show(self, stage: str = "assemble") -> str:
        """The text of a stage: trace, infer, lower (or translate), schedule, layout (or construct), assemble.

        "variables" says what became of each variable of the program.
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

    # Where the labels lie

    @cached_property
    def basis(self) -> Basis:
        """Where the labelled coordinates lie: on the axes of the residual stream, or along directions of a variant."""
        return self.variant.basis if self.variant else Axes(self.layout.width)

    @property
    def directions(self) -> NDArray[Any]:
        """The direction [d_model] along which each label of `residual` is written, a row each."""
        return self.basis.write

    @property
    def read_directions(self) -> NDArray[Any]:
        """What reads each label of `residual` off the residual stream, a column [d_model] each.

        `stream @ read_directions` are the coordinates. With layer norms columns include the anchor, so that
        `normalised(stream) @ read_directions` are the coordinates too; and `directions @ read_directions` is the
        identity.
        """
        return self.basis.read

    def coordinates(self, stream: Any) -> Any:
        """What a residual stream [..., d_model] holds under each label of `residual`.

        The stream may be a numpy array, a torch tensor or a JAX array, on any device; the result is of its kind.
        """
        return self.basis.get(stream_of(stream, self.d_model), range(self.layout.width))

    @property
    def norm(self) -> LayerNorm | None:
        """The layer norm that readers of the residual stream see it through, if there is one."""
        return self.variant.layer_norm if self.variant else None

    def normalised(self, stream: Any) -> Any:
        """What readers see of a residual stream, of any framework: itself, or what a layer norm makes of it."""
        return self.norm(as_tensor(stream), namespace_of(stream)) if self.norm else stream

    # Other weights

    @cached_property
    def plain(self) -> CompiledModel:
        """The model as its program compiles to it: of a variant, the compiled model it was made from."""
        if self.variant is None and self.certified:
            return self
        return replace(self, changed=None, variant=None, certified=True)

    @cached_property
    def labelled(self) -> CompiledModel:
        """The model with a dimension per label: of a variant, its weights along its directions, noise included."""
        if self.variant is None:
            return self
        weights = in_basis(self.parameters, self.basis.read, self.basis.write)
        return replace(self, changed=weights, variant=None, certified=self.certified and not self.variant.noise)

    def __copy__(self) -> Self:
        return replace(self)

    def __deepcopy__(self, memo: object) -> Self:
        """The model with weights of its own; what never changes is shared."""
        return replace(self, changed=self.parameters.map(np.copy))

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        layers = f"{self.n_layers} layer{'s' if self.n_layers != 1 else ''}"
        steps = "".join(f", {step}" for step in self.variant.steps) if self.variant else ""
        note = "" if self.certified else ", not certified"
        return (
            f"CompiledModel({names}: {layers}, {self.d_model} dimensions, "
            f"{self.n_parameters:,} parameters, level {self.options.level}{steps}{note})"
        )

    def _intervention(
        self, changes: object, inputs: list[list[Any]], padded: list[int], *, single: bool
    ) -> Intervention:
        return Intervention(self, changes, inputs, padded, single=single)
