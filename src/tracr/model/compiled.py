"""The compiled model: it runs on tokens, and its directions have labels."""

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
    """A transformer that computes a RASP program.

    `compilation` has the results of all steps of the compiler, including its weights. If the model runs with other
    weights, `changed` has them. `variant` says how they were made from the compiler's weights (`rotated`, `with_noise`,
    `with_layer_norm`). `own_weights` is false if they were changed in any other way. Labels and ground truth always
    describe the compiler's design, not the changed weights. `source` is the text of the program, if it is known.
    """

    compilation: Compilation
    source: str = field(default="", repr=False)
    variant: Variant | None = None
    own_weights: bool = True
    changed: Parameters | None = None

    # The results of the compiler's steps

    @property
    def options(self) -> Options:
        """The options of the compilation."""
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
        """The layer of each component."""
        return self.compilation.schedule

    @property
    def layout(self) -> Layout:
        """The dimensions of each variable."""
        return self.compilation.layout

    @property
    def search(self) -> Search | None:
        """The search for a smaller model: the candidates and the choice; `None` for a loaded model."""
        return self.compilation.search

    @property
    def parameters(self) -> Parameters:
        """The weights of the model as it runs."""
        return self.compilation.parameters if self.changed is None else self.changed

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs, each with the logits that encode it."""
        found, start = [], 0
        own = self.own_weights and self.variant is None
        for (name, number), (_, variable) in zip(self.program.outputs, self.circuit.outputs, strict=True):
            node = self.program.sops[number]
            error = variable.noise.error if own else OUTPUT_TOLERANCE
            if self.options.soft and isinstance(node.domain, Finite):
                error = max(error, self.options.soft.error * node.domain.closest)
            found.append(Output(name, node.encoding, node.domain, start, start + len(variable.values), error))
            start += len(variable.values)
        return tuple(found)

    @cached_property
    def residual(self) -> Residual:
        """The labelled dimensions of the residual stream, with writers and readers."""
        return residual_of(self.layout)

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program: where the model stores each, or why it does not, and whether it can be set."""
        return variables_of(self)

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
        found: Bounds = call("bounds", self.compilation)
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

    @cached_property
    def basis(self) -> Basis:
        """The directions of the labelled coordinates: the axes of the residual stream, or those of a variant."""
        return self.variant.basis if self.variant else Axes(self.layout.width)

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
        return self.variant.layer_norm if self.variant else None

    def normalised(self, stream: Any) -> Any:
        """The residual stream, of any framework, as its readers see it: after the layer norm, if the model has one."""
        return self.norm(as_tensor(stream), namespace_of(stream)) if self.norm else stream

    # Other weights

    @cached_property
    def plain(self) -> CompiledModel:
        """The model as it was compiled; for a variant, the compiled model that it was made from."""
        if self.variant is None and self.own_weights:
            return self
        return replace(self, changed=None, variant=None, own_weights=True)

    @cached_property
    def labelled(self) -> CompiledModel:
        """The model with one dimension per label; for a variant, with its weights (and noise) in this basis."""
        if self.variant is None:
            return self
        weights = in_basis(self.parameters, self.basis.read, self.basis.write)
        return replace(self, changed=weights, variant=None, own_weights=self.own_weights and not self.variant.noise)

    def __copy__(self) -> Self:
        return replace(self)

    def __deepcopy__(self, memo: object) -> Self:
        """The model with a copy of the weights; immutable parts are shared."""
        return replace(self, changed=self.parameters.map(np.copy))

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        layers = f"{self.n_layers} layer{'s' if self.n_layers != 1 else ''}"
        steps = "".join(f", {step}" for step in self.variant.steps) if self.variant else ""
        note = "" if self.own_weights else ", changed weights"
        return (
            f"CompiledModel({names}: {layers}, {self.d_model} dimensions, "
            f"{self.n_parameters:,} parameters, level {self.options.level}{steps}{note})"
        )

    def _intervention(
        self, changes: object, inputs: list[list[Any]], padded: list[int], *, single: bool
    ) -> Intervention:
        return Intervention(self, changes, inputs, padded, single=single)
